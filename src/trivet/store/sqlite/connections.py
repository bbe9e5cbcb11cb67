"""Connections to one SQLite file, its dialect and its errors.

If a cleanup program deletes the log (-wal) or its index (-shm) of an open store, this process
writes into a file that nobody else can find. `FileIdentityCheck` detects that.
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

from trivet.errors import StoreError
from trivet.store.relational.changes import MAX_CHANGES_KEPT
from trivet.store.relational.database import (
    KeyKind,
    Parameters,
    release_at_scope_end,
)
from trivet.store.sql_files import Dialect, Queries

_cast = re.compile(r"::[a-z0-9]+")
_LISTED = "(SELECT value FROM json_each(:{}))"
# Lists are passed as JSON; a single writer needs no row locks.
DIALECT = Dialect(
    folder=Path(__file__).parent,
    spellings={
        "in_keys": f"IN {_LISTED}",
        "in_texts": f"IN {_LISTED}",
        "not_in_keys": f"NOT IN {_LISTED}",
        "each_key": "json_each(:{}) AS wanted",
        "each_text": "json_each(:{}) AS wanted",
        "position": "instr",
        "epoch": "((julianday('now') - 2440587.5) * 86400.0)",
        "skip_locked": "",
        "tenant": "",
    },
    translate=lambda sql: _cast.sub("", sql),
)
QUERIES = Queries(DIALECT)


_NOT_UTF8 = "Could not decode to UTF-8"


PRAGMAS = (
    "synchronous = FULL",  # acknowledged writes survive a power cut, not only a crash
    "foreign_keys = ON",
    "secure_delete = ON",  # overwrites purged data
    "temp_store = MEMORY",
    # A server has connections to every tenant's file; the system caches the pages, and no recall
    # was slower (docs/decisions/0008).
    "cache_size = -512",
    "trusted_schema = OFF",  # an untrusted file's schema cannot call functions with side effects
)


class Connection(sqlite3.Connection):
    sql = QUERIES

    def put(self, file: str, name: str, row: Parameters) -> None:
        self.execute(self.sql(file)[name], row)

    def put_all(self, file: str, name: str, rows: Sequence[Parameters]) -> None:
        self.executemany(self.sql(file)[name], rows)

    def number(self, kind: KeyKind) -> None:
        """Return None: SQLite numbers a row with a NULL key itself."""

    def note_change(self, *keys: int) -> None:
        sql = self.sql("memories")
        for key in keys:
            sequence = self.execute(sql["insert_change"], {"key": key}).lastrowid or 0
            if sequence % 1000 == 0:
                self.execute(sql["trim_changes"], {"keep": MAX_CHANGES_KEPT})

    def record_changes(self) -> None:
        """Do nothing: noted changes are recorded at once."""


def is_damage(text: str) -> bool:
    return "malformed" in text or text.startswith(_NOT_UTF8)


def explain_error(error: sqlite3.Error, path: Path, busy_time_limit_ms: int) -> str:
    text = str(error)
    if "locked" in text or "busy" in text:
        return (
            f"Another process has been writing to {path} for over {busy_time_limit_ms / 1000:g} s. "
            "Nothing was written; try again."
        )
    if "full" in text:
        return f"The disk that holds {path} is full. Nothing was written; make room and try again."
    if text.startswith(_NOT_UTF8):  # SQLite's message quotes the stored text
        return f"A text in {path} is damaged. Run `trivet doctor` to find more; restore a backup."
    if "not a database" in text or "malformed" in text:
        return (
            f"{path} is not a Trivet store or is damaged ({text}). "
            "Restore a backup with `trivet backup --restore`."
        )
    if "decode to UTF-8" in text:  # the message quotes the stored text
        return (
            f"A text in {path} is damaged, so a row cannot be read. "
            "Run `trivet doctor` to find it; restore a backup."
        )
    if "readonly" in text or "unable to open" in text:
        return (
            f"{path} cannot be opened for writing ({text}). "
            "Check the permissions of the file and its folder."
        )
    return f"SQLite refused: {text} ({path})."


COMPANIONS = ("-wal", "-shm")
Identity = tuple[int, int]


class FileIdentityCheck:
    """Identities of the files at opening, which SQLite itself never replaces."""

    def __init__(self, store: Path) -> None:
        self._store = store
        self._noted: dict[Path, Identity] = {}

    def note_store(self) -> None:
        self._note(self._store)

    def note_companions(self) -> None:
        """Call this after the first read, which creates them."""
        for suffix in COMPANIONS:
            self._note(self._store.with_name(self._store.name + suffix))

    def gone(self) -> Path | None:
        return next(
            (file for file, identity in self._noted.items() if _identity(file) != identity), None
        )

    def log_can_be_saved(self) -> bool:
        """Return False if another process has made a new log, which takes precedence."""
        return _identity(self._store) is not None and all(
            _identity(file) in (None, identity) for file, identity in self._noted.items()
        )

    def _note(self, file: Path) -> None:
        found = _identity(file)
        if found is not None:
            self._noted[file] = found


def missing_file_message(file: Path, lost: str) -> str:
    return (
        f"{file} was deleted or replaced while it was open. "
        f"{lost}{'open' if lost else 'Open'} the store again."
    )


def _identity(file: Path) -> Identity | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return (found.st_dev, found.st_ino)


C = TypeVar("C", bound=sqlite3.Connection)


class Connections(Generic[C]):
    """Connections lent to a thread until its work is done or it ends."""

    def __init__(self, connect: Callable[[], C]) -> None:
        self._connect = connect
        self._mine = threading.local()
        self._guard = threading.Lock()
        self._users: dict[C, threading.Thread] = {}
        self._idle: list[C] = []  # a stack: the last one has the most recent pages cached
        self._closed = False

    def mine(self) -> C:
        if self._closed:
            raise StoreError("The store is closed. Open it again with Trivet.open().")
        connection: C | None = getattr(self._mine, "connection", None)
        if connection is None:
            connection = self._mine.connection = self._take()
            release_at_scope_end(self._release)
        return connection

    def close(self) -> None:
        """Close those no other thread uses: closing one in use would crash the process."""
        with self._guard:
            self._closed = True
            free = [connection for connection, user in self._users.items() if _has_ended(user)]
            free += self._idle
            self._idle, self._users = [], {}
        for connection in free:
            connection.close()

    def _take(self) -> C:
        with self._guard:
            connection = self._idle.pop() if self._idle else None
        connection = connection or self._connect()
        with self._guard:
            # After opening: SQLite keeps the log while one connection is open.
            self._users[connection] = threading.current_thread()
            self._close_those_of_ended_threads()
        return connection

    def _release(self) -> None:
        connection: C = self._mine.connection
        if not self._closed and connection.in_transaction:
            return  # still reading a snapshot
        self._mine.connection = None
        with self._guard:
            self._users.pop(connection, None)
            if not self._closed:
                self._idle.append(connection)
                return
        connection.close()  # harmless if its thread closed it with the store

    def _close_those_of_ended_threads(self) -> None:
        for connection in [
            connection for connection, user in self._users.items() if not user.is_alive()
        ]:
            del self._users[connection]
            connection.close()


def _has_ended(user: threading.Thread) -> bool:
    return user is threading.current_thread() or not user.is_alive()
