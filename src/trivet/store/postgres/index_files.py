"""Index files of PostgreSQL tenants in the user's cache folder, shared by its processes.

A purge invalidates files being written. Its own machine's files are gone when it returns; other
machines remove theirs within seconds or before mapping a file.
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

# Environment variable that overrides the folder.
VARIABLE = "TRIVET_INDEX_CACHE"
_DIGITS = 32
# Remove a tenant's files after this time: no process checks an unused tenant for purges.
UNUSED_SECONDS = 86_400.0
# About four million memories over all tenants; the least recently used files go first.
MAX_FOLDER_BYTES = 8 * 2**30
SWEEP_SECONDS = 3_600.0


class IndexFolder:
    def __init__(self, root: Path | None = None) -> None:
        named = os.environ.get(VARIABLE)
        self.root = root or (Path(named).expanduser() if named else cache_folder() / "index")
        self._sweep_after = 0.0

    def of(self, cell: str, tenant: str) -> Path:
        return self.root / hashlib.sha256(f"{cell}\0{tenant}".encode()).hexdigest()[:_DIGITS]

    def sweep(self) -> None:
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
        try:
            every = list(self.root.iterdir())
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [
            (folder.lstat().st_mtime, folder)
            for folder in every
            if len(folder.name) == _DIGITS and is_private(folder)
        ]


def _empty(folder: Path) -> None:
    for file in files_in(folder):
        remove_index_file(file)
    try:
        folder.rmdir()
    except OSError as error:
        logger.info("The folder %s is not removed: %s", folder, error)


def is_private(folder: Path) -> bool:
    """Return whether only this user can enter it."""
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
    """Touch the folder; a file's own time is part of its registered name."""
    try:
        os.utime(folder)
    except OSError as error:  # just removed, or the disk is read-only
        logger.info("The use of %s cannot be noted: %s", folder, error)


# Names in `meta`: this prefix and a file's mark, and the mark of the last purge.
INDEX = "index "
PURGED = "indexes purged"
OF_ONE_DATABASE = f"(starts_with(name, '{INDEX}') OR name = '{PURGED}')"
# Files that the database registers, over all machines and users.
MAX_NAMED_FILES = 64


def disown(connection: WriteTransaction | Connection) -> None:
    """Invalidate files on all machines, including those being written."""
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
        return (is_private(self.folder) or not self.folder.exists()) and super().renew(write)

    def disown(self, connection: WriteTransaction) -> None:
        disown(connection)

    def disowned(self) -> bool:
        """Remove unnamed files; return whether one could not be removed."""
        return self._find_files()[1]

    def remove_disowned(self) -> bool:
        return not self.disowned()

    def remove_all(self) -> None:
        try:
            self._removed_all()
        # Finding the folder needs the database, which is unreachable.
        except StoreError as error:
            logger.info(
                "The index files of %s cannot be removed yet: %s", self._postgres.name, error
            )

    def _named(self) -> str | None:
        return self._find_files()[0]

    def _find_files(self) -> tuple[str | None, bool]:
        """Return the latest named file and whether unnamed ones remain.

        Remove unnamed files, but not within a transaction, which may see an earlier moment.
        """
        files = self._files()
        for file in files:
            if file.suffix == PARTIAL and not is_recent(file):  # its writer was killed
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
        """Ask the primary: a standby may not know of a purge yet."""
        rows = self._asked(
            "maintenance", "index_names", names=as_json([INDEX + mark for mark in marks])
        )
        return {str(row[0]).split(" ")[0]: str(row[0]) for row in rows}

    def _moment(self) -> tuple[Any, ...]:
        [row] = self._asked("memories", "value_and_life", name=PURGED)
        return tuple(row)

    def _adopted(self, named: str, before: object) -> bool:
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
        server = self._postgres.server
        return super()._files() if server.index_folder.root.exists() and server.known_cell() else []

    def _asked(self, file: str, query: str, /, **values: Any) -> list[Any]:
        with self._postgres.errors():
            connection = self._postgres.current() or self._postgres.primary
            return connection.execute(self._postgres.sql(file)[query], values).fetchall()
