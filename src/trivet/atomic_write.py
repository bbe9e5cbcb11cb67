"""Writes a file atomically: readers see the old file or the whole new one."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

OWNER_ONLY = 0o600


@contextmanager
def atomic_write(file: Path, mode: int = OWNER_ONLY, durable: bool = True) -> Iterator[BinaryIO]:
    """A stream whose content replaces the file when the block ends; an error in the block leaves the old file.

    `durable` waits until the content is on the disk; without it a power failure may lose the new content.
    """
    handle, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.", suffix=".partial")
    partial = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            if durable:
                stream.flush()
                os.fsync(stream.fileno())
        partial.chmod(mode)
        partial.replace(file)
    finally:
        partial.unlink(missing_ok=True)
