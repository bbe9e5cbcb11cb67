"""Writing a file so that it is there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

from trivet.errors import StoreError


def write_whole(target: Path, rows: Iterable[str]) -> int:
    """Writes the rows and returns how many. Others see the old file until the new one is complete and on disk."""
    if target.exists() and not target.is_file():  # a pipe or a device is written into, never replaced by a file
        return _write_into(target, rows)
    try:
        handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.", suffix=".partial")
    except OSError as error:
        raise _cannot(target, error) from None
    partial = Path(name)
    count = 0
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as file:
            for row in rows:
                file.write(f"{row}\n")
                count += 1
            file.flush()
            os.fsync(file.fileno())
        partial.replace(target)
    except OSError as error:
        raise _cannot(target, error) from None
    finally:
        partial.unlink(missing_ok=True)
    return count


def _write_into(target: Path, rows: Iterable[str]) -> int:
    count = 0
    try:
        with target.open("w", encoding="utf-8", newline="\n") as file:
            for row in rows:
                file.write(f"{row}\n")
                count += 1
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror}.") from None
    return count


def _cannot(target: Path, error: OSError) -> StoreError:
    return StoreError(f"{target} cannot be written: {error.strerror}. Nothing was changed; name another file.")
