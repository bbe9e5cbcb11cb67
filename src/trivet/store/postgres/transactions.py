"""What a statement runs on: a transaction of its own, or one that the caller opened."""

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
# Whether a prepared statement is planned once or, where the server thinks it better, for the values it gets each time.
PlanCacheMode = Literal["force_generic_plan", "auto"]
SetUp = Callable[[Connection, PlanCacheMode], None]
# What recalls ask: some rows by their keys or ids, which are found the same way whatever the values. To plan them
# anew each time took a quarter of what the server did for a recall. Others, a filter say, are planned for their values.
PLANNED_ONCE: Mapping[str, Sequence[str]] = {
    "graph": ("concepts_of_forms",),
    "jobs": ("pending_with_readings",),
    "lexical": ("documents_of", "postings"),
    "likely_updates": ("touching",),
    "memories": ("changes_since", "seen_by_ids", "terms_of_ids"),
    "vectors": ("described", "spans_at", "vectors_of"),
}
# What a transaction is for, which decides whether a tenant that is being moved lets it in.
TransactionPurpose = Literal["read", "queue", "write"]

# Of one kind; more would only take memory.
ROWS_AT_ONCE = 1_000
# What is committed before lies before it.
_POSITION = "SELECT (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"


def _set(connection: Connection, settings: Mapping[str, str]) -> None:
    """For this transaction alone."""
    for name, value in settings.items():
        connection.execute("SELECT set_config(%s, %s, true)", (name, value))


@cache
def _planned_once() -> frozenset[str]:
    return frozenset(QUERIES(file)[name] for file, names in PLANNED_ONCE.items() for name in names)


def _flush(connection: Connection) -> None:
    """Waits until all of a statement is sent. In a pipeline psycopg would wait for answers with a large statement half
    sent, and the server for the other half."""
    connection.wait(_flush_steps(connection.pgconn))


def _flush_steps(pgconn: PGconn) -> Generator[Wait, Ready | int, None]:
    while True:
        ready = yield Wait.RW
        if ready & Ready.R:
            pgconn.consume_input()
        if ready & Ready.W and not pgconn.flush():
            return


class StandbyChoice:
    """The standby that answers within a moment; None after it failed, or after the caller wrote something."""

    def __init__(self, replica: Replica | None) -> None:
        self.replica = replica


class AutocommitReader:
    """Each statement is a transaction, sent in one go; a lost connection is tried again, for nothing was written.

    What a pipeline sends before it waits is one transaction, without BEGIN and COMMIT.
    """

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
            except (
                psycopg.OperationalError
            ) as error:  # lost, busy, or in the way of what it has to replay
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
    """The result of a statement, fetched when it is read: until then the next statements can be sent."""

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
    id: str | None = None  # by which the server can be asked whether it was committed
    life = ""  # of the server: in another one the id may be another transaction's
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
        """By a cursor of the server, so that never all rows are in memory."""
        name = f"portions_{next(self._numbers)}"
        self.execute(f"DECLARE {name} NO SCROLL CURSOR FOR {sql}")
        # Not prepared: what a cursor of this name gave in an earlier transaction may have had other columns.
        while some := self._connection.execute(
            f"FETCH {rows} FROM {name}", prepare=False, binary=True
        ).fetchall():
            yield some
        self.execute(f"CLOSE {name}")

    def finish(self) -> None:
        """What is left to write before the commit."""

    def wait_for_answers(self) -> None:
        """Every statement was taken, or one of them raises its error now."""
        self._pipeline.sync()

    def commit(self, tells_position: bool) -> int:
        """Where the log is after it, for standbys to reach; 0 where the caller does not ask."""
        self._connection.execute("COMMIT")
        answer = self._connection.execute(_POSITION) if tells_position else None
        self._pipeline.sync()
        row = answer.fetchone() if answer else None
        return int(row[0]) if row else 0


def roll_back(connection: Connection) -> None:
    """What was not committed. A lost connection has nothing to roll back."""
    if connection.info.transaction_status not in (
        TransactionStatus.IDLE,
        TransactionStatus.UNKNOWN,
    ):
        connection.execute("ROLLBACK")


class PostgresWrite(Transaction):
    """Holds the lock on the tenant's row from the start, so numbers taken here are in the order of commits.

    Rows that are put are gathered, and go out by one statement a kind before anything else is asked: to plan a
    statement for each row takes several times as long as to write it. So the queries that rows are put by are this
    store's own, and take all of them as the JSON list :rows.
    """

    def __init__(self, connection: Connection, pipeline: psycopg.Pipeline) -> None:
        self._gathered: dict[tuple[str, str], list[Parameters]] = {}
        super().__init__(connection, pipeline)
        row = self.execute(self.sql("memories")["lock_tenant"]).fetchone()
        assert row is not None, "the row is made when the store is opened"
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
        """Each kind in the order in which it came first in this transaction: a row comes after what it refers to."""
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
        """After rows that came with numbers of their own."""
        self._last = {"memory": memory, "concept": concept}

    def note_change(self, *keys: int) -> None:
        self._changed.update(dict.fromkeys(keys))

    def finish(self) -> None:
        self.record_changes()

    def record_changes(self) -> None:
        """The changes all at once: to update the tenant's row once a change would make each slower than the last."""
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
