"""The file beside a store that holds its indexes, ready to be mapped: which one is current, how it is made and removed.

A store at `memory.db` has it in the folder `memory.db.index`. The database names the one file that belongs to it by a
random mark, its size and the time it was written: a copy of the store, one put back from a backup, a file of another
store or one that somebody has changed is thus told from it. Whatever database knows a mark has all changes up to the
one that its file was made at, so the file can only be older than the database, never other than it was.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from trivet.mapped_arrays import ArrayWriter
from trivet.private_folder import private_folder
from trivet.store.relational.mapped_index import KIND, Facts, MappedIndex

if TYPE_CHECKING:
    from trivet.store.sqlite.database import Connection, Database

logger = logging.getLogger("trivet.store.sqlite")

# In the table of single values: which file is current, or that all must go.
_INDEX = "index"
_DISOWNED = "disowned"
SUFFIX = ".arrays"
PARTIAL = ".partial"
MARK_BYTES = 16
# A file that another process began to write this long ago is taken for left behind.
LEASE_SECONDS = 300.0
# Files that appear while others are removed are removed too; more rounds than this are never needed.
ROUNDS = 100

# Writes the arrays of a store under this mark, and says what they are about.
Write = Callable[[ArrayWriter, str], Facts]


class IndexFiles:
    def __init__(self, database: Database) -> None:
        self._database = database
        self.folder = database.path.with_name(f"{database.path.name}.index")
        self._known: tuple[str, MappedIndex | None] = ("", None)

    def current(self) -> MappedIndex | None:
        """The file that the database names, mapped; None where it names none or it is not as it was written."""
        named = self._named()
        if named is None or named == _DISOWNED:
            return None
        if self._known[0] != named:
            self._known = (named, self.opened())
        return self._known[1]

    def opened(self) -> MappedIndex | None:
        """The current one, opened anew."""
        named = self._named()
        if named is None or named == _DISOWNED:
            return None
        mark = named.split(" ")[0]
        file = self.folder / f"{mark}{SUFFIX}"
        if _named_as(file, mark) != named:
            return None
        index = MappedIndex.open(file)
        known = index is not None and (index.facts.mark, index.facts.schema) == (mark, self._database.schema)
        return index if known else None

    def renew(self, write: Write) -> bool:
        """Writes a new file and makes it the current one, unless another process is about to.

        The file is there before the database is read: who removes all files after a purge thus removes it, or it was
        begun after the purge.
        """
        private_folder(self.folder)
        if any(_is_recent(file) for file in self._files() if file.suffix == PARTIAL) or not self.remove_disowned():
            return False
        before = self._named()
        mark = secrets.token_hex(MARK_BYTES)
        file = self.folder / f"{mark}{SUFFIX}"
        with _new_file(file.with_suffix(PARTIAL), file) as stream:
            writer = ArrayWriter(stream, KIND)
            facts = write(writer, mark)
            writer.finish({name: str(value) for name, value in msgspec.structs.asdict(facts).items()})
        written = MappedIndex.open(file)
        if written is None or written.damaged() or not self._adopted(file, mark, before):
            file.unlink(missing_ok=True)
            return False
        self._remove_others(file)
        return True

    def throw_away(self) -> None:
        """Every file, and the name of the current one."""
        with self._database.write() as connection:
            self.disown(connection)
        self.remove_disowned()

    def _adopted(self, file: Path, mark: str, before: str | None) -> bool:
        """Names it in the database, unless something was purged, or another file was named, since it was begun."""
        with self._database.write() as connection:
            named = _named_as(file, mark)
            if named is None or self._named() != before:
                return False
            connection.execute(connection.sql("maintenance")["set_meta"], {"name": _INDEX, "value": named})
            return True

    def disown(self, connection: Connection) -> None:
        """Within a transaction that purges: no process maps what there is any more, and it is to be removed."""
        connection.execute(connection.sql("maintenance")["set_meta"], {"name": _INDEX, "value": _DISOWNED})

    def disowned(self) -> bool:
        return self._named() == _DISOWNED

    def remove_disowned(self) -> bool:
        """Removes every file after a purge, those that are being written too. False: one is in use and stays."""
        if not self.disowned():
            return True
        self._known = ("", None)
        if not self._removed_all():
            return False
        sql = self._database.sql("maintenance")["drop_meta"]
        self._database.read().execute(sql, {"name": _INDEX, "value": _DISOWNED})
        return True

    def _removed_all(self) -> bool:
        for _ in range(ROUNDS):  # one that is being written changes its name meanwhile
            files = self._files()
            for file in files:
                _remove(file)
            if not files:
                return True
        return False

    def _named(self) -> str | None:
        with self._database.errors():
            sql = self._database.sql("maintenance")["get_meta"]
            row = self._database.read().execute(sql, {"name": _INDEX}).fetchone()
        return None if row is None else str(row[0])

    def _remove_others(self, kept: Path) -> None:
        for file in self._files():
            if file != kept and not (file.suffix == PARTIAL and _is_recent(file)):
                _remove(file)

    def _files(self) -> list[Path]:
        try:
            return [file for file in self.folder.iterdir() if file.suffix in (SUFFIX, PARTIAL)]
        except (FileNotFoundError, NotADirectoryError):
            return []


@contextmanager
def _new_file(partial: Path, file: Path) -> Iterator[BinaryIO]:
    """A stream whose content appears as the file when the block ends; after an error nothing is left of it."""
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        partial.rename(file)
    finally:
        partial.unlink(missing_ok=True)


def _named_as(file: Path, mark: str) -> str | None:
    """As the database names the file that lies there now."""
    try:
        found = file.stat()
    except OSError:
        return None
    return f"{mark} {found.st_size} {found.st_mtime_ns}"


def _is_recent(file: Path) -> bool:
    """A clock that was set back makes it no younger than now."""
    try:
        return abs(time.time() - file.stat().st_mtime) < LEASE_SECONDS
    except OSError:
        return False


def _remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:  # Windows removes no file that a process has mapped; the next attempt does
        logger.info("The index file %s cannot be removed yet: %s", file, error)
