"""The connections to one SQLite file. Each is one thread's at a time, until its work is done or the thread ends."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from trivet.errors import StoreError
from trivet.store.borrowing import at_end_of_work

C = TypeVar("C", bound=sqlite3.Connection)


class Connections(Generic[C]):
    def __init__(self, connect: Callable[[], C]) -> None:
        self._connect = connect
        self._mine = threading.local()
        self._guard = threading.Lock()
        self._users: dict[C, threading.Thread] = {}
        self._idle: list[C] = []  # the last one is taken first, since its pages are those that were asked for lately
        self._closed = False

    def mine(self) -> C:
        """This thread's."""
        if self._closed:
            raise StoreError("The store is closed. Open it again with Trivet.open().")
        connection: C | None = getattr(self._mine, "connection", None)
        if connection is None:
            connection = self._mine.connection = self._take()
            at_end_of_work(self._give_back)
        return connection

    def close(self) -> None:
        """Closes what no other thread can be using: closing a connection in use would crash the process.

        The connection of a thread that still runs goes when its work is done, or with that thread.
        """
        with self._guard:
            self._closed = True
            free = [connection for connection, user in self._users.items() if _is_over(user)]
            free += self._idle
            self._idle, self._users = [], {}
        for connection in free:
            connection.close()

    def _take(self) -> C:
        with self._guard:
            connection = self._idle.pop() if self._idle else None
        connection = connection or self._connect()
        with self._guard:
            # In this order: while one connection is open, SQLite keeps the log and its index where they are.
            self._users[connection] = threading.current_thread()
            self._close_those_of_ended_threads()
        return connection

    def _give_back(self) -> None:
        connection: C = self._mine.connection
        if not self._closed and connection.in_transaction:
            return  # whatever goes on reading at one moment is still this thread's
        self._mine.connection = None
        with self._guard:
            self._users.pop(connection, None)
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()  # which its own thread may have done already, with the store

    def _close_those_of_ended_threads(self) -> None:
        for connection in [connection for connection, user in self._users.items() if not user.is_alive()]:
            del self._users[connection]
            connection.close()


def _is_over(user: threading.Thread) -> bool:
    return user is threading.current_thread() or not user.is_alive()
