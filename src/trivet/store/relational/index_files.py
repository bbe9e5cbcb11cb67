"""The files that hold the indexes of a store, ready to be mapped: which one is current, how it is made and removed.

The database names each file that belongs to it by a random mark, its size and the time it was written: a file of
another store, or one that somebody has changed, is thus told from it. Whatever database knows a mark has all changes up
to the one that its file was made at, be it a copy, one put back from a backup or a standby that took over. So a file
can only be older than the database, never other than it was.
"""

from __future__ import annotations

import logging
import os
import secrets
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from trivet.mapped_arrays import ArrayWriter
from trivet.private_folder import private_folder
from trivet.store.relational.mapped_index import KIND, Facts, MappedIndex

if TYPE_CHECKING:
    from trivet.store.relational.database import StoreDatabase, WriteTransaction

logger = logging.getLogger("trivet.store")

SUFFIX = ".arrays"
PARTIAL = ".partial"
MARK_BYTES = 16
# A file that another process began to write this long ago is taken for left behind.
LEASE_SECONDS = 300.0
# Files that appear while others are removed are removed too; more rounds than this are never needed.
ROUNDS = 100
PENDING = "Its words and vectors may be left in an index file that another process has open. They go when it ends."

# Writes the arrays of a store under this mark, and says what they are about.
Write = Callable[[ArrayWriter, str], Facts]


class IndexFiles(ABC):
    """A kind of database says where its files lie and how it keeps their names."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database
        self._known: tuple[str, MappedIndex | None] = ("", None)

    @property
    @abstractmethod
    def folder(self) -> Path: ...

    @abstractmethod
    def _named(self) -> str | None:
        """The file that the database names: its mark, size and time. None if it names none."""

    @abstractmethod
    def _moment(self) -> object:
        """Something that is another one once something was purged, or the database may have lost what it told."""

    @abstractmethod
    def _adopted(self, named: str, before: object) -> bool:
        """Names a new file in the database, unless `_moment` is another one than before it was begun."""

    @abstractmethod
    def disown(self, connection: WriteTransaction) -> None:
        """Within a transaction that purges: no process maps what there is any more, and it is to be removed."""

    @abstractmethod
    def disowned(self) -> bool:
        """Whether there are files that are to be removed."""

    @abstractmethod
    def remove_disowned(self) -> bool:
        """Removes every file after a purge, those that are being written too. False: one is in use and stays."""

    def current(self) -> MappedIndex | None:
        """The file that the database names, mapped; None where it names none or it is not as it was written."""
        named = self._named()
        if named is None:
            return None
        if self._known[0] != named:
            self._known = (named, self._mapped(named))
        return self._known[1]

    def opened(self) -> MappedIndex | None:
        """The current one, opened anew."""
        named = self._named()
        return None if named is None else self._mapped(named)

    def tidy(self) -> bool:
        """Removes what other stores left behind long ago. False where each has a folder of its own."""
        return False

    def renew(self, write: Write) -> bool:
        """Writes a new file and makes it the current one, unless another process is about to.

        The file is there before the database is read: who removes all files after a purge thus removes it, or it was
        begun after the purge. It gets its name once the database knows it, so one with a name that the database does
        not know is never a new one.
        """
        private_folder(self.folder)
        if any(is_recent(file) for file in self._files() if file.suffix == PARTIAL) or not self.remove_disowned():
            return False
        before = self._moment()
        mark = secrets.token_hex(MARK_BYTES)
        partial, file = self.folder / f"{mark}{PARTIAL}", self.folder / f"{mark}{SUFFIX}"
        try:
            with _new_file(partial) as stream:
                writer = ArrayWriter(stream, KIND)
                facts = write(writer, mark)
                writer.finish({name: str(value) for name, value in msgspec.structs.asdict(facts).items()})
            named = named_as(partial, mark) if _is_sound(partial) else None
            if named is None or not self._adopted(named, before):
                return False
            partial.rename(file)
        finally:
            partial.unlink(missing_ok=True)
        self._remove_others(file)
        return True

    def throw_away(self) -> None:
        """Every file, and the name of the current one."""
        with self._database.write() as connection:
            self.disown(connection)
        self.remove_disowned()

    def close(self) -> None:
        """Lets go of the file that is mapped."""
        self._known = ("", None)

    def _mapped(self, named: str) -> MappedIndex | None:
        mark = named.split(" ")[0]
        file = self.folder / f"{mark}{SUFFIX}"
        if named_as(file, mark) != named:
            return None
        index = MappedIndex.open(file)
        known = index is not None and (index.facts.mark, index.facts.schema) == (mark, self._database.schema)
        return index if known else None

    def _removed_all(self) -> bool:
        self.close()
        for _ in range(ROUNDS):  # one that is being written changes its name meanwhile
            files = self._files()
            for file in files:
                remove(file)
            if not files:
                return True
        return False

    def _remove_others(self, kept: Path) -> None:
        for file in self._files():
            if file != kept and not (file.suffix == PARTIAL and is_recent(file)):
                remove(file)

    def _files(self) -> list[Path]:
        return files_in(self.folder)


def files_in(folder: Path) -> list[Path]:
    try:
        return [file for file in folder.iterdir() if file.suffix in (SUFFIX, PARTIAL)]
    except (FileNotFoundError, NotADirectoryError):
        return []


def named_as(file: Path, mark: str) -> str | None:
    """As the database names the file that lies there now."""
    try:
        found = file.stat()
    except OSError:
        return None
    return f"{mark} {found.st_size} {found.st_mtime_ns}"


def remove(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:  # Windows removes no file that a process has mapped; the next attempt does
        logger.info("The index file %s cannot be removed yet: %s", file, error)


@contextmanager
def _new_file(partial: Path) -> Iterator[BinaryIO]:
    """A stream into a file that must not be there yet. What was written is on the disk when the block ends."""
    handle = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    with os.fdopen(handle, "wb") as stream:
        yield stream
        stream.flush()
        os.fsync(stream.fileno())


def _is_sound(file: Path) -> bool:
    """Reads the whole file. It is no longer mapped afterwards, so that it can be renamed on Windows too."""
    index = MappedIndex.open(file)
    return index is not None and not index.damaged()


def is_recent(file: Path) -> bool:
    """A clock that was set back makes it no younger than now."""
    try:
        return abs(time.time() - file.stat().st_mtime) < LEASE_SECONDS
    except OSError:
        return False
