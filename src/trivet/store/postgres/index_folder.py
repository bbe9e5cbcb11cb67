"""Where this machine keeps index files of tenants: in the user's cache folder, because they can be made again.

Every process of the user finds the same folder for a tenant, by whichever address it reaches the database, so that what
one of them purges is gone for all.
"""

from __future__ import annotations

import hashlib
import logging
import os
import time
from pathlib import Path

from trivet.settings import cache_folder
from trivet.store.relational.index_files import files_in, remove

logger = logging.getLogger("trivet.store.postgres")

# Where the files lie instead.
VARIABLE = "TRIVET_INDEX_CACHE"
_DIGITS = 32
# The files of a tenant that nobody used here for a day go: no process looks whether something of it was purged.
UNUSED_SECONDS = 86_400.0
# Of all tenants together: some four million memories. Beyond, those that were not used for longest go.
MOST_BYTES = 8 * 2**30
SWEEP_SECONDS = 3_600.0


class IndexFolder:
    """One for all tenants of a server in a process."""

    def __init__(self, root: Path | None = None) -> None:
        named = os.environ.get(VARIABLE)
        self.root = root or (Path(named).expanduser() if named else cache_folder() / "index")
        self._sweep_after = 0.0

    def of(self, cell: str, tenant: str) -> Path:
        """Not made. `cell` is what the database is known by, wherever it is moved to and whatever it is called."""
        return self.root / hashlib.sha256(f"{cell}\0{tenant}".encode()).hexdigest()[:_DIGITS]

    def sweep(self) -> None:
        """Now and then removes files of tenants that were not used for long, and those that are too many."""
        if time.monotonic() < self._sweep_after:
            return
        self._sweep_after = time.monotonic() + SWEEP_SECONDS
        held = 0
        for used, folder in sorted(self._used(), reverse=True):
            files = files_in(folder)
            held += sum(file.stat().st_size for file in files)
            if files and (held > MOST_BYTES or abs(time.time() - used) > UNUSED_SECONDS):
                _empty(folder)

    def _used(self) -> list[tuple[float, Path]]:
        """The folders of tenants, and when each was used last."""
        try:
            every = list(self.root.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [(one.lstat().st_mtime, one) for one in every if len(one.name) == _DIGITS and is_private(one)]


def _empty(folder: Path) -> None:
    """Whatever else lies in it stays, and the folder with it."""
    for file in files_in(folder):
        remove(file)
    try:
        folder.rmdir()
    except OSError as error:
        logger.info("The folder %s is not removed: %s", folder, error)


def is_private(folder: Path) -> bool:
    """Whether it is there and this user's alone: what others could have put into it is neither mapped nor removed."""
    try:
        status = folder.lstat()
    except OSError:
        return False
    if not folder.is_dir() or folder.is_symlink():
        return False
    return not hasattr(os, "getuid") or (status.st_uid == os.getuid() and not status.st_mode & 0o077)


def note_use(folder: Path) -> None:
    """By the time of the folder: that of a file is a part of its name."""
    try:
        os.utime(folder)
    except OSError as error:  # it was removed just now, or the disk is read-only
        logger.info("That %s is in use cannot be noted: %s", folder, error)
