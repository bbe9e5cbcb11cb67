"""The seam between the store and a database. Everything above it is written once; a folder such as sqlite/ fills it.

`Database` is what the parts of a store ask while they work. `StoreDatabase` is what RelationalStore asks once, when it
puts the parts together: the few things that each kind of database does its own way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from trivet.store.relational.queries import Queries

if TYPE_CHECKING:
    from trivet.store.relational.changes import Changes
    from trivet.store.relational.ids import AllIds, Ids
    from trivet.store.relational.index_files import IndexFiles
    from trivet.store.relational.maintenance import Maintenance
    from trivet.store.relational.mapped_index import MappedIndex
    from trivet.store.relational.vector_index import VectorIndex
    from trivet.store.relational.visibility import Visibility
    from trivet.store.scoring import Postings

# What is still to be erased from the files is noted in `meta` under this name, by the transaction that purged it.
ERASING = "erasing"

Parameters = Mapping[str, Any]
Numbered = Literal["memory", "concept"]
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

    def number(self, kind: Numbered) -> int | None:
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
    def age(self) -> int:
        """Rises when the database may have lost changes that were seen before, as after a failover."""

    @property
    def viewer(self) -> str | None:
        """The user of a server for whom it is read and written; None for the owner of the store."""

    def unseen(self) -> Connection:
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

    def vector_index(self, visibility: Visibility, changes: Changes, ids: Ids) -> VectorIndex: ...
    def maintenance(self, vectors: VectorIndex) -> Maintenance: ...
    def read_postings(self, terms: Sequence[str], weights: Weights) -> dict[str, Postings]:
        """Which memories hold each of the terms, and how often, weighted by field."""

    def mapped_index(self) -> MappedIndex | None:
        """The file that holds the store's indexes as of some change; None where there is none to be used."""

    def portions(self, sql: str, rows: int) -> Iterator[Sequence[Any]]:
        """The rows of a query without parameters, so many at a time. To be called within a `snapshot`."""

    def all_ids(self, fresh: bool = False) -> AllIds | None:
        """Every id at once, but for later ones; None where they are looked up one by one.

        With `fresh` as the database has them, and not as the index file does.
        """

    def encode_vector(self, vector: NDArray[np.float16]) -> object:
        """As the column of a passage takes it."""

    def seen_by(self, user: str) -> Database:
        """The same database for one user of a server."""

    def close(self) -> None: ...


@runtime_checkable
class FollowedStore(Protocol):
    """A database that can follow a server: a file of a laptop's."""

    def followed_by_owner(self) -> Database: ...


class Part:
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
