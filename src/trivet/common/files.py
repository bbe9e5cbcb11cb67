"""Makes folders that only their owner may enter.

Opens files that lie below a folder and are what they seem: no symbolic link, no pipe, nothing outside of it.

Writes a file atomically: readers see the old file or the whole new one.
"""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from trivet.errors import InvalidInput

OWNER_ONLY_FOLDER = 0o700


def private_folder(folder: Path) -> Path:
    """Makes a folder unless it is there, and those above it that are missing, each for its owner alone.

    `Path.mkdir(parents=True)` gives its mode to the last one only. A folder that is there keeps its rights.
    """
    for one in reversed([above for above in folder.parents if not above.exists()]):
        one.mkdir(mode=OWNER_ONLY_FOLDER, exist_ok=True)
    folder.mkdir(mode=OWNER_ONLY_FOLDER, exist_ok=True)
    return folder


# Do not follow a link made since the listing, and do not wait for a writer at a pipe.
_SAFE_OPEN_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def check_contained(root: Path, path: str) -> None:
    """Refuses a path that leads out of the root once links are followed. The root itself may be behind a link."""
    if not Path(os.path.realpath((root / path).parent)).is_relative_to(os.path.realpath(root)):
        raise InvalidInput("it leads outside of the folder, so it is not read")


def read_regular_file(file: Path | str, most: int) -> tuple[bytes, os.stat_result]:
    """The bytes of a regular file of at most so many bytes, and its status when reading began."""
    try:
        handle = os.open(file, os.O_RDONLY | _SAFE_OPEN_FLAGS)
    except OSError as error:
        raise InvalidInput(f"it cannot be read ({error.strerror})") from None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise InvalidInput("it is not a regular file")
        if found.st_size > most:
            raise InvalidInput(
                f"it has {found.st_size:,} bytes, and at most {most:,} are read. Split it"
            )
        with os.fdopen(handle, "rb", closefd=False) as opened:
            return opened.read(most + 1), found
    finally:
        os.close(handle)


OWNER_ONLY_FILE = 0o600


@contextmanager
def atomic_write(
    file: Path, mode: int = OWNER_ONLY_FILE, durable: bool = True
) -> Iterator[BinaryIO]:
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
