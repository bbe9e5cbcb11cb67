"""What a thread borrows for a piece of work goes back at its end, so that the next thread can have it.

A server has a thread for each request under way, and any of them may be asked about any tenant: if each kept a
connection to the file of every tenant it has worked for, those would take most of the server's memory.

The seam between the store and a database. Everything above it is written once; a folder such as sqlite/ fills it.

`Database` is what the parts of a store ask while they work. `StoreDatabase` is what RelationalStore asks once, when it
puts the parts together: the few things that each kind of database does its own way.

A database as one user of a server sees it: the same connections, with the user's name on every read and write.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from trivet.errors import Moved, Moving, StoreError
from trivet.store.sql_files import Queries

if TYPE_CHECKING:
    from trivet.store.relational.index.index_files import IndexFiles, MappedIndex
    from trivet.store.relational.index.postings import Postings


_work = threading.local()


@contextmanager
def lease_scope() -> Iterator[None]:
    """A piece of work of this thread. One within another is part of that."""
    if _pending_releases() is not None:
        yield
        return
    pending_releases: list[Callable[[], None]] = []
    _work.pending_releases = pending_releases
    try:
        yield
    finally:
        _work.pending_releases = None
        for release in pending_releases:
            release()


def release_at_scope_end(release: Callable[[], None]) -> None:
    """Outside a piece of work a thread keeps what it has."""
    pending_releases = _pending_releases()
    if pending_releases is not None:
        pending_releases.append(release)


def _pending_releases() -> list[Callable[[], None]] | None:
    pending_releases: list[Callable[[], None]] | None = getattr(_work, "pending_releases", None)
    return pending_releases


# What is still to be erased from the files is noted in `meta` under this name, by the transaction that purged it.
ERASING = "erasing"

Parameters = Mapping[str, Any]
KeyKind = Literal["memory", "concept"]
Weights = tuple[float, ...]


class Row(Protocol):
    """Its values by position and by name."""

    def __getitem__(self, name: Any, /) -> Any: ...
    def __iter__(self) -> Iterator[Any]: ...
    def __len__(self) -> int: ...


class Cursor(Protocol):
    @property
    def rowcount(self) -> int: ...
    def fetchone(self) -> Any: ...
    def fetchall(self) -> list[Any]: ...
    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """What reads need."""

    @property
    def sql(self) -> Queries: ...
    def execute(self, sql: str, parameters: Parameters = ..., /) -> Cursor: ...


class Transaction(Connection, Protocol):
    """Its statements are committed together, or none of them."""

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> Cursor: ...


class WriteTransaction(Transaction, Protocol):
    """One that makes rows and puts memories on the record of changes."""

    def put(self, file: str, name: str, row: Parameters) -> None:
        """Writes by a named query that answers nothing: now, or with others of its kind before the next statement."""

    def put_all(self, file: str, name: str, rows: Sequence[Parameters]) -> None:
        """The same for each of the rows."""

    def number(self, kind: KeyKind) -> int | None:
        """The next key: small, never reused. None where the database gives it by itself."""

    def note_change(self, *keys: int) -> None:
        """Puts memories on the record of changes, in the order of commits."""

    def record_changes(self) -> None:
        """What was noted so far can be read within this transaction."""


class Database(Protocol):
    @property
    def sql(self) -> Queries: ...
    @property
    def name(self) -> str:
        """Where it is, as people may see it."""

    @property
    def schema(self) -> int: ...
    @property
    def generation(self) -> int:
        """Rises when the database may have lost changes that were seen before, as after a failover."""

    @property
    def viewer(self) -> str | None:
        """The user of a server for whom it is read and written; None for the owner of the store."""

    def read_unrestricted(self) -> Connection:
        """Reads that no viewer limits: for what the store must know and never tells."""

    def read(self) -> Connection:
        """Outside a transaction each statement sees the latest commit."""

    def write(self) -> AbstractContextManager[WriteTransaction]:
        """One transaction: all of it is committed, or nothing. Within another one it is part of that."""

    def take(self) -> AbstractContextManager[Transaction]:
        """A transaction on the queues alone, which puts nothing on the record of changes."""

    def snapshot(self) -> AbstractContextManager[Connection]:
        """Reads that see one moment, whatever is written meanwhile."""

    def moment(self, change: int) -> AbstractContextManager[None]:
        """Reads outside transactions may be answered by a copy that knows this change and what this process wrote."""

    def errors(self) -> AbstractContextManager[None]:
        """Turns the driver's errors into ours, saying what to do."""

    def integers(self, sql: str) -> NDArray[np.int64]:
        """The one column of a query with very many rows."""

    def size(self) -> int:
        """Bytes on disk."""

    def erasing(self) -> AbstractContextManager[WriteTransaction]:
        """A `write` after which what was deleted or overwritten goes from the files too, as far as it can at once.

        That it is to be finished is noted in the same transaction.
        """


class StoreDatabase(Database, Protocol):
    @property
    def index_files(self) -> IndexFiles: ...

    def finish_erasing(self, of_any_size: bool = False) -> str | None:
        """Goes on with what `erasing` could not finish; what is still pending and why, or None.

        With `of_any_size` also where that keeps others waiting for long.
        """

    def pending_erasure(self) -> str | None:
        """What is pending, without doing anything about it."""

    def read_postings(self, terms: Sequence[str], weights: Weights) -> dict[str, Postings]:
        """Which memories hold each of the terms, and how often, weighted by field."""

    def mapped_index(self) -> MappedIndex | None:
        """The file that holds the store's indexes as of some change; None where there is none to be used."""

    def batches(self, sql: str, rows: int) -> Iterator[Sequence[Any]]:
        """The rows of a query without parameters, so many at a time. To be called within a `snapshot`."""

    def all_ids(self, fresh: bool = False) -> IdsByKey | None:
        """Every id at once, but for later ones; None where they are looked up one by one.

        With `fresh` as the database has them, and not as the index file does.
        """

    def encode_vector(self, vector: NDArray[np.float16]) -> object:
        """As the column of a passage takes it."""

    def seen_by(self, user: str) -> Database:
        """The same database for one user of a server."""

    def close(self) -> None: ...


@runtime_checkable
class SupportsFollowing(Protocol):
    """A database that can follow a server: a file of a laptop's."""

    def as_follower(self) -> Database: ...


class StorePart:
    """A part of the store that has a file of queries."""

    file: ClassVar[str]

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def _sql(self) -> Mapping[str, str]:
        return self._database.sql(self.file)

    def _rows(self, name: str, /, **values: Any) -> list[Any]:
        """What one of the part's queries reads."""
        with self._database.errors():
            return self._database.read().execute(self._sql[name], values).fetchall()

    def _row(self, name: str, /, **values: Any) -> Any:
        """The first row of it, or None."""
        with self._database.errors():
            return self._database.read().execute(self._sql[name], values).fetchone()


# By key; empty where there is none, or one that is no UUID: the contract takes no others, but a store may hold them.
IdsByKey = NDArray[np.bytes_]


UUID_LENGTH = 36


MOVING_FOR_USERS = "The memories are being moved to another database. Nothing was written; try again in some seconds."


class ViewerDatabase:
    """One user of a server, who is not told where its store lies."""

    def __init__(self, whole: Database, viewer: str) -> None:
        self._whole = whole
        self.viewer = viewer

    @property
    def sql(self) -> Queries:
        return self._whole.sql

    @property
    def name(self) -> str:
        return "the server's store"  # where it lies is not for its users to know

    @property
    def schema(self) -> int:
        return self._whole.schema

    @property
    def generation(self) -> int:
        return self._whole.generation

    def read_unrestricted(self) -> Connection:
        return self._whole.read()

    def read(self) -> Connection:
        return self._whole.read()

    @contextmanager
    def write(self) -> Iterator[WriteTransaction]:
        with self._without_location(), self._whole.write() as connection:
            yield connection

    @contextmanager
    def take(self) -> Iterator[Transaction]:
        with self._without_location(), self._whole.take() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        with self._without_location(), self._whole.snapshot() as connection:
            yield connection

    def moment(self, change: int) -> AbstractContextManager[None]:
        return self._whole.moment(change)

    @contextmanager
    def errors(self) -> Iterator[None]:
        with self._without_location(), self._whole.errors():
            yield

    @contextmanager
    def erasing(self) -> Iterator[WriteTransaction]:
        with self._without_location(), self._whole.erasing() as connection:
            yield connection

    def integers(self, sql: str) -> NDArray[np.int64]:
        return self._whole.integers(sql)

    def size(self) -> int:
        return self._whole.size()

    @contextmanager
    def _without_location(self) -> Iterator[None]:
        try:
            yield
        except (Moved, Moving) as error:  # both homes are named in it
            raise type(error)(MOVING_FOR_USERS) from error
        except StoreError as error:
            whole = self._whole.name
            text = (
                str(error)
                .replace(whole, self.name)
                .replace(whole.partition(" (tenant ")[0], self.name)
            )
            raise type(error)(text) from error


class FollowerDatabase(ViewerDatabase):
    """A laptop's store that follows a server, as its owner sees it: what others shared is theirs, offline too."""

    @property
    def name(self) -> str:
        return self._whole.name

    @contextmanager
    def _without_location(self) -> Iterator[None]:
        yield
