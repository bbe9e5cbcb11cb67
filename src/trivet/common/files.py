"""Safe file operations: owner-only folders, reads of regular files, atomic writes."""

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
    """Create a folder and missing parents for the owner only.

    `Path.mkdir(parents=True)` applies its mode to the last one only.
    """
    for parent in reversed([parent for parent in folder.parents if not parent.exists()]):
        parent.mkdir(mode=OWNER_ONLY_FOLDER, exist_ok=True)
    folder.mkdir(mode=OWNER_ONLY_FOLDER, exist_ok=True)
    return folder


# Do not follow a link created since the listing, and do not wait for a pipe's writer.
_SAFE_OPEN_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def check_contained(root: Path, path: str) -> None:
    """Raise InvalidInput if the path leads outside the root, which may be a link itself."""
    if not Path(os.path.realpath((root / path).parent)).is_relative_to(os.path.realpath(root)):
        raise InvalidInput("it leads outside the folder, so it is not read")


def read_regular_file(file: Path | str, most: int) -> tuple[bytes, os.stat_result]:
    """Return the content and initial status of a file of at most `most` bytes."""
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
                f"it has {found.st_size:,} bytes, but at most {most:,} are read. Split it"
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
    """Yield a stream whose content replaces the file if the block succeeds.

    Without `durable`, a power failure may lose the new content.
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
