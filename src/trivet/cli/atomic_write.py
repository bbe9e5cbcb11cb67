"""Writing a file so that it is there whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trivet.atomic_write import atomic_write
from trivet.errors import StoreError


def write_whole(target: Path, rows: Iterable[str]) -> int:
    """Writes the rows and returns how many. Others see the old file until the new one is complete and on disk."""
    if target.exists() and not target.is_file():  # a pipe or a device is written into, never replaced by a file
        return _write_into(target, rows)
    count = 0
    try:
        with atomic_write(target) as file:
            for row in rows:
                file.write(f"{row}\n".encode())
                count += 1
    except OSError as error:
        raise StoreError(
            f"{target} cannot be written: {error.strerror}. Nothing was changed; name another file."
        ) from None
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
