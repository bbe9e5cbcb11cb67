"""Opens files that lie below a folder and are what they seem: no symbolic link, no pipe, nothing outside of it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from trivet.errors import InvalidInput

# Do not follow a link made since the listing, and do not wait for a writer at a pipe.
_SAFELY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def check_contained(root: Path, path: str) -> None:
    """Refuses a path that leads out of the root once links are followed. The root itself may be behind a link."""
    if not Path(os.path.realpath((root / path).parent)).is_relative_to(os.path.realpath(root)):
        raise InvalidInput("it leads outside of the folder, so it is not read")


def read_regular(file: Path | str, most: int) -> tuple[bytes, os.stat_result]:
    """The bytes of a regular file of at most so many bytes, and its status when reading began."""
    try:
        handle = os.open(file, os.O_RDONLY | _SAFELY)
    except OSError as error:
        raise InvalidInput(f"it cannot be read ({error.strerror})") from None
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise InvalidInput("it is not a regular file")
        if found.st_size > most:
            raise InvalidInput(f"it has {found.st_size:,} bytes, and at most {most:,} are read. Split it")
        with os.fdopen(handle, "rb", closefd=False) as opened:
            return opened.read(most + 1), found
    finally:
        os.close(handle)
