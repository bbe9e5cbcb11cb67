"""Transactions: one per statement, or one that the caller opened."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any, Literal

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.pq.abc import PGconn
from psycopg.waiting import Ready, Wait

from trivet.memory_fields import as_json
from trivet.store.postgres.connections import QUERIES, Connection, Row, may_retry
from trivet.store.postgres.replicas import Replica
from trivet.store.postgres.server import Server
from trivet.store.relational.changes import MAX_CHANGES_KEPT
from trivet.store.relational.database import KeyKind, Parameters

NONE: Parameters = {}
# Plan a prepared statement once, or as the server thinks best.
PlanCacheMode = Literal["force_generic_plan", "auto"]
SetUp = Callable[[Connection, PlanCacheMode], None]
# Recall queries with the same plan for all values: planning them took a quarter of the server's
# work for a recall.
PLANNED_ONCE: Mapping[str, Sequence[str]] = {
    "graph": ("concepts_of_forms",),
    "jobs": ("pending_with_readings",),
    "lexical": ("documents_of", "postings"),
    "likely_updates": ("touching",),
    "memories": ("changes_since", "seen_by_ids", "terms_of_ids"),
    "vectors": ("described", "spans_at", "vectors_of"),
}
# Decides whether a tenant being moved admits it.
TransactionPurpose = Literal["read", "queue", "write"]

# Larger batches would only take memory.
ROWS_AT_ONCE = 1_000
_POSITION = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"


def _set(connection: Connection, settings: Mapping[str, str]) -> None:
    for name, value in settings.items():
        connection.execute("SELECT set_config(%s, %s, true)", (name, value))


@cache
def _planned_once() -> frozenset[str]:
    return frozenset(QUERIES(file)[name] for file, names in PLANNED_ONCE.items() for name in names)


def _flush(connection: Connection) -> None:
    """Send a statement completely.

    In a pipeline psycopg would wait for answers with half of it sent, and the server for the rest.
    """
    connection.wait(_flush_steps(connection.pgconn))


def _flush_steps(pgconn: PGconn) -> Generator[Wait, Ready | int, None]:
    while True:
        ready = yield Wait.RW
        if ready & Ready.R:
            pgconn.consume_input()
        if ready & Ready.W and not pgconn.flush():
            return


class StandbyChoice:
    """The moment's standby; None after it failed or the caller wrote."""

    def __init__(self, replica: Replica | None) -> None:
        self.replica = replica


class AutocommitReader:
    """Reads sent as one pipeline each, a transaction without BEGIN and COMMIT."""

    sql = QUERIES

    def __init__(
        self, server: Server, set_up: SetUp, chosen: Callable[[], StandbyChoice | None]
    ) -> None:
        self._server = server
        self._set_up = set_up
        self._chosen = chosen

    def execute(self, sql: str, parameters: Parameters = NONE, /) -> psycopg.Cursor[Row]:
        return self.execute_with({}, sql, parameters)

    def execute_with(
        self, settings: Mapping[str, str], sql: str, parameters: Parameters
    ) -> psycopg.Cursor[Row]:
        choice = self._chosen()
        if choice and choice.replica:
            try:
                with choice.replica.connection() as connection:
                    return self._run(connection, settings, sql, parameters)
            # Lost, busy, or in conflict with replay.
            except psycopg.OperationalError as error:
                choice.replica.mark_failed(error)
                choice.replica = None
        for last in self._server.attempts():
            try:
                with self._server.connection() as connection:
                    return self._run(connection, settings, sql, parameters)
            except psycopg.Error as error:
                if not may_retry(error, last):
                    raise
        raise AssertionError("attempts do not end by themselves")

    def _run(
        self, connection: Connection, settings: Mapping[str, str], sql: str, parameters: Parameters
    ) -> psycopg.Cursor[Row]:
        with connection.pipeline():
            connection.forget_old_plans()
            self._set_up(connection, "force_generic_plan" if sql in _planned_once() else "auto")
            _set(connection, settings)
            cursor = connection.execute(sql, parameters, binary=True)
            _flush(connection)
        return cursor


class Answer:
    """A statement's result, fetched when read: more statements can go first."""

    def __init__(self, cursor: psycopg.Cursor[Row], pipeline: psycopg.Pipeline) -> None:
        self._cursor = cursor
        self._pipeline = pipeline
        self.fetchone = cursor.fetchone
        self.fetchall = cursor.fetchall

    @property
    def rowcount(self) -> int:
        if self._cursor.pgresult is None:
            self._pipeline.sync()
        return self._cursor.rowcount

    def __iter__(self) -> Iterator[Row]:
        return iter(self._cursor.fetchall())


class Transaction:
    sql = QUERIES
    id: str | None = None  # lets the server say whether it was committed
    life = ""  # the server's timeline; in another one the id may be a different transaction's
    committed = False

    def __init__(self, connection: Connection, pipeline: psycopg.Pipeline) -> None:
        self._connection = connection
        self._pipeline = pipeline
        self._numbers = count()

    def execute(self, sql: str, parameters: Parameters = NONE, /) -> Answer:
        cursor = self._connection.execute(sql, parameters)
        _flush(self._connection)
        return Answer(cursor, self._pipeline)

    def execute_with(self, settings: Mapping[str, str], sql: str, parameters: Parameters) -> Answer:
        _set(self._connection, settings)
        return self.execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> Answer:
        cursor = self._connection.cursor()
        cursor.executemany(sql, list(parameters))
        _flush(self._connection)
        return Answer(cursor, self._pipeline)

    def batches(self, sql: str, rows: int) -> Iterator[Sequence[Row]]:
        name = f"portions_{next(self._numbers)}"
        self.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {sql}")
        # An earlier cursor of this name may have had other columns.
        while some := self._connection.execute(
            f"FETCH {rows} FROM {name}", prepare=False, binary=True
        ).fetchall():
            yield some
        self.execute(f"CLOSE {name}")

    def finish(self) -> None:
        """Write the remaining rows before the commit."""

    def wait_for_answers(self) -> None:
        """Raise the error of a failed statement."""
        self._pipeline.sync()

    def commit(self, tells_position: bool) -> int:
        """Commit and return the log position, or 0 if not asked."""
        self._connection.execute("COMMIT")
        answer = self._connection.execute(_POSITION) if tells_position else None
        self._pipeline.sync()
        row = answer.fetchone() if answer else None
        return int(row[0]) if row else 0


def roll_back(connection: Connection) -> None:
    if connection.info.transaction_status not in (
        TransactionStatus.IDLE,
        TransactionStatus.UNKNOWN,
    ):
        connection.execute("ROLLBACK")


class PostgresWrite(Transaction):
    """A write that locks the tenant's row, so that numbers follow commit order.

    One statement per kind writes the rows passed to `put`. Such queries take the rows as the JSON
    list :rows.
    """

    def __init__(self, connection: Connection, pipeline: psycopg.Pipeline) -> None:
        self._gathered: dict[tuple[str, str], list[Parameters]] = {}
        super().__init__(connection, pipeline)
        row = self.execute(self.sql("memories")["lock_tenant"]).fetchone()
        assert row is not None, "the row is created when the store is opened"
        self._last: dict[KeyKind, int] = {"memory": row[0], "concept": row[1]}
        self._last_change: int = row[2]
        self.id, self.life = row[3], row[4]
        self._before = (row[0], row[1])
        self._changed: dict[int, None] = {}

    def execute(self, sql: str, parameters: Parameters = NONE, /) -> Answer:
        self._write_gathered()
        return super().execute(sql, parameters)

    def executemany(self, sql: str, parameters: Iterable[Parameters], /) -> Answer:
        self._write_gathered()
        return super().executemany(sql, parameters)

    def put(self, file: str, name: str, row: Parameters) -> None:
        rows = self._gathered.setdefault((file, name), [])
        rows.append(row)
        if len(rows) >= ROWS_AT_ONCE:
            self._write_gathered()

    def _write_gathered(self) -> None:
        """Keep the order of first use: rows follow those they refer to."""
        for (file, name), rows in self._gathered.items():
            if rows:
                super().execute(self.sql(file)[name], {"rows": as_json(rows)})
                rows.clear()

    def put_all(self, file: str, name: str, rows: Sequence[Parameters]) -> None:
        for row in rows:
            self.put(file, name, row)

    def number(self, kind: KeyKind) -> int:
        self._last[kind] += 1
        return self._last[kind]

    def number_from(self, memory: int, concept: int) -> None:
        self._last = {"memory": memory, "concept": concept}

    def note_change(self, *keys: int) -> None:
        self._changed.update(dict.fromkeys(keys))

    def finish(self) -> None:
        self.record_changes()

    def record_changes(self) -> None:
        """Record them at once: updates of the tenant's row get slower one by one."""
        self._write_gathered()
        sql, first = self.sql("memories"), self._last_change
        if self._changed:
            self.execute(sql["insert_changes"], {"last": first, "keys": as_json(self._changed)})
        values: dict[str, Any] = {
            "last_key": self._last["memory"],
            "last_concept": self._last["concept"],
            "last_change": first + len(self._changed),
        }
        if self._changed or self._before != (values["last_key"], values["last_concept"]):
            self.execute(sql["move_on"], values)
        if first // 1000 != values["last_change"] // 1000:
            self.execute(sql["trim_changes"], {"keep": MAX_CHANGES_KEPT})
        self._changed, self._last_change = {}, values["last_change"]
        self._before = (values["last_key"], values["last_concept"])
