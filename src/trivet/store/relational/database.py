"""The seam between the store and a database: the protocols that sqlite and postgres implement."""

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
    """Delimit a thread's piece of work; a nested scope joins the outer one."""
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
    """Call `release` at the end of the scope; without one, keep the lease."""
    pending_releases = _pending_releases()
    if pending_releases is not None:
        pending_releases.append(release)


def _pending_releases() -> list[Callable[[], None]] | None:
    pending_releases: list[Callable[[], None]] | None = getattr(_work, "pending_releases", None)
    return pending_releases


# Name in `meta` for purges not yet erased from the files.
ERASING = "erasing"

Parameters = Mapping[str, Any]
KeyKind = Literal["memory", "concept"]
Weights = tuple[float, ...]


class Row(Protocol):
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
    @property
    def sql(self) -> Queries: ...
    def execute(self, sql: str, parameters: Parameters = ..., /) -> Cursor: ...


class Transaction(Connection, Protocol):
    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> Cursor: ...


class WriteTransaction(Transaction, Protocol):
    def put(self, file: str, name: str, row: Parameters) -> None:
        """Write with a named query, at once or before the next statement."""

    def put_all(self, file: str, name: str, rows: Sequence[Parameters]) -> None: ...

    def number(self, kind: KeyKind) -> int | None:
        """Return the next key, never reused; None if the database assigns it."""

    def note_change(self, *keys: int) -> None:
        """Log these memories as changed, in commit order."""

    def record_changes(self) -> None:
        """Make noted changes readable within this transaction."""


class Database(Protocol):
    @property
    def sql(self) -> Queries: ...
    @property
    def name(self) -> str: ...

    @property
    def schema(self) -> int: ...
    @property
    def generation(self) -> int:
        """A number that rises when changes already seen may be lost, as after a failover."""

    @property
    def viewer(self) -> str | None:
        """The user who reads and writes; None for the store's owner."""

    def read_unrestricted(self) -> Connection:
        """Return reads beyond the viewer's rights; their results must not be revealed."""

    def read(self) -> Connection:
        """Return reads that see the latest commit, or the current transaction."""

    def write(self) -> AbstractContextManager[WriteTransaction]:
        """Open a transaction, or join the current one."""

    def take(self) -> AbstractContextManager[Transaction]:
        """Open a transaction on the queues, which logs no changes."""

    def snapshot(self) -> AbstractContextManager[Connection]:
        """Open reads that all see one moment."""

    def moment(self, change: int) -> AbstractContextManager[None]:
        """Allow reads from a replica that has this change and this process's writes."""

    def errors(self) -> AbstractContextManager[None]:
        """Turn driver errors into Trivet's."""

    def integers(self, sql: str) -> NDArray[np.int64]: ...

    def size(self) -> int: ...

    def erasing(self) -> AbstractContextManager[WriteTransaction]:
        """Open a `write` that also erases deleted data from the files, as far as possible now."""


class StoreDatabase(Database, Protocol):
    @property
    def index_files(self) -> IndexFiles: ...

    def finish_erasing(self, of_any_size: bool = False) -> str | None:
        """Finish what `erasing` left; return what is still pending, or None.

        With `of_any_size`, even if other writers must wait long.
        """

    def pending_erasure(self) -> str | None: ...

    def read_postings(self, terms: Sequence[str], weights: Weights) -> dict[str, Postings]:
        """Return the holders of each term with field-weighted frequencies."""

    def mapped_index(self) -> MappedIndex | None:
        """Return the index file, or None if none is usable."""

    def batches(self, sql: str, rows: int) -> Iterator[Sequence[Any]]:
        """Yield a query's rows in batches; call it within a `snapshot`."""

    def all_ids(self, fresh: bool = False) -> IdsByKey | None:
        """Return all but the newest ids, or None where single lookups are cheaper.

        With `fresh`, read the database instead of the index file.
        """

    def encode_vector(self, vector: NDArray[np.float16]) -> object: ...

    def seen_by(self, user: str) -> Database: ...

    def close(self) -> None: ...


@runtime_checkable
class SupportsFollowing(Protocol):
    def as_follower(self) -> Database: ...


class StorePart:
    file: ClassVar[str]

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def _sql(self) -> Mapping[str, str]:
        return self._database.sql(self.file)

    def _rows(self, name: str, /, **values: Any) -> list[Any]:
        with self._database.errors():
            return self._database.read().execute(self._sql[name], values).fetchall()

    def _row(self, name: str, /, **values: Any) -> Any:
        with self._database.errors():
            return self._database.read().execute(self._sql[name], values).fetchone()


# By key; empty if missing or, against the contract, no UUID.
IdsByKey = NDArray[np.bytes_]


UUID_LENGTH = 36


MOVING_FOR_USERS = (
    "The memories are being moved to another database. Nothing was written; "
    "try again in a few seconds."
)


class ViewerDatabase:
    """A database for one user of a server; its errors hide the location."""

    def __init__(self, whole: Database, viewer: str) -> None:
        self._whole = whole
        self.viewer = viewer

    @property
    def sql(self) -> Queries:
        return self._whole.sql

    @property
    def name(self) -> str:
        return "the server's store"  # users must not learn the location

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
        except (Moved, Moving) as error:  # its text names both locations
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
    """A laptop's store that follows a server, seen by its owner."""

    @property
    def name(self) -> str:
        return self._whole.name

    @contextmanager
    def _without_location(self) -> Iterator[None]:
        yield
