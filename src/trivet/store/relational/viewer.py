"""A database as one user of a server sees it: the same connections, with the user's name on every read and write."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import numpy as np
from numpy.typing import NDArray

from trivet.errors import Moved, Moving, StoreError
from trivet.store.relational.database import Connection, Database, Transaction, WriteTransaction
from trivet.store.relational.queries import Queries

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
    def age(self) -> int:
        return self._whole.age

    def unseen(self) -> Connection:
        return self._whole.read()

    def read(self) -> Connection:
        return self._whole.read()

    @contextmanager
    def write(self) -> Iterator[WriteTransaction]:
        with self._without_its_place(), self._whole.write() as connection:
            yield connection

    @contextmanager
    def take(self) -> Iterator[Transaction]:
        with self._without_its_place(), self._whole.take() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Iterator[Connection]:
        with self._without_its_place(), self._whole.snapshot() as connection:
            yield connection

    def moment(self, change: int) -> AbstractContextManager[None]:
        return self._whole.moment(change)

    @contextmanager
    def errors(self) -> Iterator[None]:
        with self._without_its_place(), self._whole.errors():
            yield

    @contextmanager
    def erasing(self) -> Iterator[WriteTransaction]:
        with self._without_its_place(), self._whole.erasing() as connection:
            yield connection

    def integers(self, sql: str) -> NDArray[np.int64]:
        return self._whole.integers(sql)

    def size(self) -> int:
        return self._whole.size()

    @contextmanager
    def _without_its_place(self) -> Iterator[None]:
        try:
            yield
        except (Moved, Moving) as error:  # both homes are named in it
            raise type(error)(MOVING_FOR_USERS) from error
        except StoreError as error:
            whole = self._whole.name
            text = str(error).replace(whole, self.name).replace(whole.partition(" (tenant ")[0], self.name)
            raise type(error)(text) from error


class FollowerDatabase(ViewerDatabase):
    """A laptop's store that follows a server, as its owner sees it: what others shared is theirs, offline too."""

    @property
    def name(self) -> str:
        return self._whole.name

    @contextmanager
    def _without_its_place(self) -> Iterator[None]:
        yield
