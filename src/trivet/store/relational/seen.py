"""A database as one user of a server sees it: the same connections, with the user's name on every read and write."""

from __future__ import annotations

from contextlib import AbstractContextManager

from trivet.store.relational.database import Connection, Database
from trivet.store.relational.queries import Queries


class SeenDatabase:
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
    def age(self) -> int:
        return self._whole.age

    def unseen(self) -> Connection:
        return self._whole.read()

    def read(self) -> Connection:
        return self._whole.read()

    def write(self) -> AbstractContextManager[Connection]:
        return self._whole.write()

    def take(self) -> AbstractContextManager[Connection]:
        return self._whole.take()

    def snapshot(self) -> AbstractContextManager[Connection]:
        return self._whole.snapshot()

    def moment(self, change: int) -> AbstractContextManager[None]:
        return self._whole.moment(change)

    def errors(self) -> AbstractContextManager[None]:
        return self._whole.errors()

    def size(self) -> int:
        return self._whole.size()
