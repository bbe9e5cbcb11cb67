"""`-` in the place of a text or a file means standard input.

Writing a file so that it is there whole or not at all.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import count
from pathlib import Path
from typing import TextIO

from trivet.common.files import atomic_write
from trivet.errors import InvalidInput, StoreError

DASH = "-"
# A memory of 32 KiB with a history of two thousand revisions.
LONGEST_LINE = 64 * 2**20


def read_if_dash(text: str) -> str:
    """The text itself, or all of standard input without its last line end, which the shell put there."""
    if text != DASH:
        return text
    try:
        return sys.stdin.buffer.read().decode().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise InvalidInput(f"Standard input is not UTF-8 text ({error.reason}). Convert it first.") from None


@contextmanager
def open_lines(name: str) -> Iterator[Iterator[str]]:
    """The lines of a file. What is not UTF-8 is marked rather than refused, so that a bad line costs only itself."""
    if name == DASH:
        yield _lines(TextIOWrapper(sys.stdin.buffer, encoding="utf-8-sig", errors="surrogateescape"))
        return
    try:
        with open(name, encoding="utf-8-sig", errors="surrogateescape") as file:  # noqa: PTH123 - a name as typed
            yield _lines(file)
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}.") from None


def _lines(file: TextIO) -> Iterator[str]:
    """Bounded, since a file without line ends, or a device, would fill the memory."""
    for number in count(1):
        line = file.readline(LONGEST_LINE + 1)
        if not line:
            return
        if len(line) > LONGEST_LINE:
            raise InvalidInput(
                f"Line {number} is longer than {LONGEST_LINE:,} characters: this is no file of memories."
            )
        yield line


def write_rows_atomically(target: Path, rows: Iterable[str]) -> int:
    """Writes the rows and returns how many. Others see the old file until the new one is complete and on disk."""
    if target.exists() and not target.is_file():  # a pipe or a device is written into, never replaced by a file
        return _write_rows(target, rows)
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


def _write_rows(target: Path, rows: Iterable[str]) -> int:
    count = 0
    try:
        with target.open("w", encoding="utf-8", newline="\n") as file:
            for row in rows:
                file.write(f"{row}\n")
                count += 1
    except OSError as error:
        raise StoreError(f"{target} cannot be written: {error.strerror}.") from None
    return count
