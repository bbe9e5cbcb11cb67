"""Where this machine keeps index files of tenants: in the user's cache folder, because they can be made again.

Every process of the user finds the same folder for a tenant, by whichever address it reaches the database, so that what
one of them purges is gone for all.

The index files of one tenant of a PostgreSQL database. Each machine that works with it has its own.

The tenant's table of single values has a row for each file. A purge deletes them all in its transaction, so that no
process maps a file any more that was made before, and leaves a mark by which one that is just being written is known
to be too old. The machine that purged has removed its files when the purge returns; another one does as soon as a
process of it looks, which workers do every few seconds and each cache before it maps a file.
"""

from __future__ import annotations

import hashlib
import logging
import os
import secrets
import time
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trivet.errors import StoreError
from trivet.memory_fields import as_json
from trivet.settings import cache_folder
from trivet.store.postgres.connections import QUERIES, Connection
from trivet.store.relational.index.index_files import (
    MARK_BYTES,
    PARTIAL,
    SUFFIX,
    IndexFiles,
    Write,
    files_in,
    is_recent,
    remove_index_file,
)

if TYPE_CHECKING:
    from trivet.store.postgres.database import Database
    from trivet.store.relational.database import WriteTransaction


logger = logging.getLogger("trivet.store.postgres")

# Where the files lie instead.
VARIABLE = "TRIVET_INDEX_CACHE"
_DIGITS = 32
# The files of a tenant that nobody used here for a day go: no process looks whether something of it was purged.
UNUSED_SECONDS = 86_400.0
# Of all tenants together: some four million memories. Beyond, those that were not used for longest go.
MAX_FOLDER_BYTES = 8 * 2**30
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
            if files and (held > MAX_FOLDER_BYTES or abs(time.time() - used) > UNUSED_SECONDS):
                _empty(folder)

    def _used(self) -> list[tuple[float, Path]]:
        """The folders of tenants, and when each was used last."""
        try:
            every = list(self.root.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [
            (one.lstat().st_mtime, one)
            for one in every
            if len(one.name) == _DIGITS and is_private(one)
        ]


def _empty(folder: Path) -> None:
    """Whatever else lies in it stays, and the folder with it."""
    for file in files_in(folder):
        remove_index_file(file)
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
    return not hasattr(os, "getuid") or (
        status.st_uid == os.getuid() and not status.st_mode & 0o077
    )


def note_use(folder: Path) -> None:
    """By the time of the folder: that of a file is a part of its name."""
    try:
        os.utime(folder)
    except OSError as error:  # it was removed just now, or the disk is read-only
        logger.info("That %s is in use cannot be noted: %s", folder, error)


# In the table of single values: a row of this and its mark for each file, and the mark of the last purge.
INDEX = "index "
PURGED = "indexes purged"
# The rows that concern the history of one database, and the disks of its machines.
OF_ONE_DATABASE = f"(starts_with(name, '{INDEX}') OR name = '{PURGED}')"
# Files of so many machines and users are known at a time.
MAX_NAMED_FILES = 64


def disown(connection: WriteTransaction | Connection) -> None:
    """The tenant has no files any more, on whichever machine, and none that is just being written becomes one."""
    sql = QUERIES("maintenance")
    connection.execute(sql["disown_indexes"])
    connection.execute(sql["set_meta"], {"name": PURGED, "value": secrets.token_hex(MARK_BYTES)})


class PostgresIndexFiles(IndexFiles):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._postgres = database

    @cached_property
    def folder(self) -> Path:
        server = self._postgres.server
        return server.index_folder.of(server.cell, self._postgres.tenant)

    def tidy(self) -> bool:
        self._postgres.server.index_folder.sweep()
        return True

    def renew(self, write: Write) -> bool:
        """In no folder that others may enter."""
        return (is_private(self.folder) or not self.folder.exists()) and super().renew(write)

    def disown(self, connection: WriteTransaction) -> None:
        disown(connection)

    def disowned(self) -> bool:
        """Some are left that could not be removed: all others that the database does not name have just gone."""
        return self._look()[1]

    def remove_disowned(self) -> bool:
        return not self.disowned()

    def remove_all(self) -> None:
        """After a purge, or where the tenant turns out to live elsewhere. What is left then goes with the next look."""
        try:
            self._removed_all()
        except (
            StoreError
        ) as error:  # the database cannot be reached, and was not asked before where the files lie
            logger.info(
                "The index files of %s cannot be removed yet: %s", self._postgres.name, error
            )

    def _named(self) -> str | None:
        return self._look()[0]

    def _look(self) -> tuple[str | None, bool]:
        """The latest file here that the database names, and whether there are some that it does not name.

        Those go at once: a new file gets its name only when the database knows it. Within a transaction they stay, as
        that may see an earlier moment.
        """
        files = self._files()
        for file in files:
            if file.suffix == PARTIAL and not is_recent(file):  # whoever wrote it was killed
                remove_index_file(file)
        here = {file.stem: file for file in files if file.suffix == SUFFIX}
        if not here or not is_private(self.folder):
            return None, False
        named = self._names(here)
        strange = [file for mark, file in here.items() if mark not in named]
        if self._postgres.current() is None:
            for file in strange:
                remove_index_file(file)
        if named:
            note_use(self.folder)
        latest = max(named.values(), key=lambda one: int(one.split(" ")[2]), default=None)
        return latest, any(file.exists() for file in strange)

    def _names(self, marks: Iterable[str]) -> dict[str, str]:
        """By mark. A standby is not asked: it may not have heard of a purge, or of a new file."""
        rows = self._asked(
            "maintenance", "index_names", names=as_json([INDEX + mark for mark in marks])
        )
        return {str(row[0]).split(" ")[0]: str(row[0]) for row in rows}

    def _moment(self) -> tuple[Any, ...]:
        """The last purge, and in which life the server is: in another one it may have lost its latest changes."""
        [row] = self._asked("memories", "value_and_life", name=PURGED)
        return tuple(row)

    def _adopted(self, named: str, before: object) -> bool:
        """Behind the lock that purges take too. The files that were here before go next, and their names with them."""
        mark = named.split(" ")[0]
        earlier = [INDEX + file.stem for file in self._files() if file.suffix == SUFFIX]
        with self._postgres.write() as connection:
            if self._moment() != before:
                return False
            sql = connection.sql("maintenance")
            connection.execute(sql["set_meta"], {"name": INDEX + mark, "value": named})
            connection.execute(sql["drop_index_names"], {"names": as_json(earlier)})
            connection.execute(sql["keep_index_names"], {"most": MAX_NAMED_FILES})
            return True

    def _files(self) -> list[Path]:
        """None where the database has no name yet: whoever writes the first file gives it one."""
        server = self._postgres.server
        return super()._files() if server.index_folder.root.exists() and server.known_cell() else []

    def _asked(self, file: str, query: str, /, **values: Any) -> list[Any]:
        with self._postgres.errors():
            connection = self._postgres.current() or self._postgres.primary
            return connection.execute(self._postgres.sql(file)[query], values).fetchall()
