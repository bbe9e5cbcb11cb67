"""One process at a time follows the server for a file. Others may exchange too, by `sync now`, and do no harm."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

# Windows has no resident process either, which alone follows by itself.
if sys.platform != "win32":
    import fcntl


class Lease:
    """A lock on a file beside the store, which ends with the process that has it."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @classmethod
    def of(cls, path: str) -> Self | None:
        """None where another process has it."""
        if sys.platform == "win32":
            return None
        handle = os.open(f"{Path(path).expanduser()}.sync", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return None
        return cls(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._handle)
