"""What the shared parts of a store ask of its database."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from trivet.store.relational.queries import Queries

Parameters = Mapping[str, Any]
Numbered = Literal["memory", "concept"]


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
    @property
    def sql(self) -> Queries: ...
    def execute(self, sql: str, parameters: Parameters = ..., /) -> Cursor: ...
    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> Cursor: ...
    def put(self, file: str, name: str, row: Parameters) -> None:
        """Writes by a named query that answers nothing: now, or with others of its kind before the next statement."""

    def number(self, kind: Numbered) -> int | None:
        """The next key: small, never reused. None where the database gives it by itself."""

    def note_change(self, key: int) -> None:
        """Puts a memory on the record of changes, in the order of commits."""


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
        """The user for whom it is read and written; None for whoever has the store."""

    def unseen(self) -> Connection:
        """Reads that no viewer limits: for what the store must know and never tells."""

    def read(self) -> Connection:
        """Outside a transaction each statement sees the latest commit."""

    def write(self) -> AbstractContextManager[Connection]:
        """One transaction: all of it is committed, or nothing. Within another one it is part of that."""

    def take(self) -> AbstractContextManager[Connection]:
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
