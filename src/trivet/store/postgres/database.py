"""One tenant's part of a database, in transactions that hide all other tenants' rows.

The tenant is set per transaction, so that a transaction pooler works.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from types import MappingProxyType
from typing import TypeVar

import numpy as np
import psycopg
from numpy.typing import NDArray

from trivet.errors import InvalidInput, Moved, StoreError, UnknownFate
from trivet.memory_fields import as_json
from trivet.store.postgres.connections import (
    QUERIES,
    Connection,
    Row,
    is_away,
    may_retry,
    unknown_outcome,
)
from trivet.store.postgres.index_files import PostgresIndexFiles
from trivet.store.postgres.server import Server
from trivet.store.postgres.tenant_tables import PURGE_MARK, VACUUM_PENDING, erase
from trivet.store.postgres.transactions import (
    AutocommitReader,
    PlanCacheMode,
    PostgresWrite,
    StandbyChoice,
    Transaction,
    TransactionPurpose,
    roll_back,
)
from trivet.store.relational.database import ERASING, UUID_LENGTH, IdsByKey, ViewerDatabase, Weights
from trivet.store.relational.index.index_files import PENDING, MappedIndex
from trivet.store.relational.index.postings import Postings

# Refuses a tenant that lives elsewhere (migrations/0012.sql).
_ENTER = "SELECT trivet_enter(%s, %s, %s, %s), set_config('plan_cache_mode', %s, true)"

# The caller works between batches, for as long as it needs.
_NO_IDLE_TIMEOUT = "SET LOCAL idle_in_transaction_session_timeout = 0"

# Bounds the tenant's name, which is in every row and index.
MAX_TENANT_LENGTH = 200
# Reading more ids than this takes longer than many recalls.
MAX_PACKED_IDS = 1_000_000
_FIELDS = ("content", "title", "keywords", "tags", "category")

_choices: ContextVar[Mapping[Database, StandbyChoice]] = ContextVar(
    "the standbys chosen", default=MappingProxyType({})
)

T = TypeVar("T", bound=Transaction)


class Database:
    sql = QUERIES
    viewer = None

    def __init__(self, server: Server, tenant: str) -> None:
        if not 0 < len(tenant) <= MAX_TENANT_LENGTH or "\x00" in tenant:
            raise InvalidInput(
                f"A tenant needs a name of 1 to {MAX_TENANT_LENGTH} characters. Nothing was opened."
            )
        self.server = server
        self.tenant = tenant
        self.name = f"{server.name} (tenant {tenant})"
        self.schema = server.schema
        self._local = threading.local()
        self._closed = False
        self._written = 0  # log position after this process's last write
        self._reader = self.reader()
        self.primary = AutocommitReader(server, self.set_up, lambda: None)  # never a standby
        self.index_files = PostgresIndexFiles(self)
        with self.errors():
            is_new = self._reader.execute(self.sql("memories")["last_change"]).fetchone() is None
        if is_new:
            server.claim(tenant)
            with self.take() as transaction:
                transaction.execute(self.sql("memories")["make_tenant"], {"tenant": tenant})

    def read(self) -> AutocommitReader | Transaction:
        return self.current() or self._reader

    read_unrestricted = read

    def current(self) -> Transaction | None:
        if self._closed:
            raise StoreError("The store is closed. Open it again with Trivet.open().")
        current: Transaction | None = getattr(self._local, "transaction", None)
        return current

    @contextmanager
    def write(self) -> Iterator[PostgresWrite]:
        """Lock the tenant's row, so that changes are numbered in commit order."""
        with self._transaction("BEGIN", PostgresWrite, "write") as transaction:
            yield transaction

    @contextmanager
    def take(self) -> Iterator[Transaction]:
        with self._transaction("BEGIN", Transaction, "queue") as transaction:
            yield transaction

    @contextmanager
    def erasing(self) -> Iterator[PostgresWrite]:
        with self.write() as transaction:
            yield transaction
            row = transaction.execute(PURGE_MARK).fetchone()
            assert row is not None, "a query without a table returns one row"
            transaction.execute(
                self.sql("maintenance")["set_meta"], {"name": ERASING, "value": row[0]}
            )
            self.index_files.disown(transaction)
            self._local.erases = True  # `_transaction` removes the files at its end

    def finish_erasing(self, of_any_size: bool = False) -> str | None:
        left = None if self.index_files.remove_disowned() else PENDING
        marked = self._marked()
        if marked is None:
            return left
        with self.errors(), self.server.connection() as connection:
            pending = erase(connection, marked)
        if pending is None:
            with self.take() as transaction:  # keeps the mark of a later purge
                transaction.execute(
                    self.sql("maintenance")["drop_meta"], {"name": ERASING, "value": marked}
                )
        return pending or left

    def pending_erasure(self) -> str | None:
        """Also remove files that another machine disowned."""
        left = PENDING if self.index_files.disowned() else None
        return left if self._marked() is None else VACUUM_PENDING

    def _marked(self) -> str | None:
        with self.errors():
            row = (
                self.read()
                .execute(self.sql("maintenance")["get_meta"], {"name": ERASING})
                .fetchone()
            )
        return None if row is None else str(row[0])

    @contextmanager
    def snapshot(self) -> Iterator[Transaction]:
        with self._transaction(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", Transaction, "read"
        ) as transaction:
            yield transaction

    @property
    def generation(self) -> int:
        return self.server.generation

    @contextmanager
    def moment(self, change: int) -> Iterator[None]:
        """Send reads to one fresh standby: several would show different moments."""
        if not self.server.replicas:
            yield
            return
        choice = StandbyChoice(self.server.replicas.choose(self.set_up, change, self._written))
        token = _choices.set({**_choices.get(), self: choice})
        try:
            yield
        finally:
            _choices.reset(token)

    def reader(self, viewer: str = "") -> AutocommitReader:
        return AutocommitReader(
            self.server, partial(self.set_up, viewer=viewer), lambda: _choices.get().get(self)
        )

    @contextmanager
    def errors(self) -> Iterator[None]:
        try:
            with self.server.errors():
                yield
        except Moved:  # keep no files of a tenant that lives elsewhere
            self.index_files.remove_all()
            raise

    def integers(self, sql: str) -> NDArray[np.int64]:
        """Return the column, packed by the database: many times faster than rows."""
        packed = f"SELECT string_agg(int8send(one.value), ''::bytea) FROM ({sql}) AS one (value)"
        with self.errors():
            [row] = self.read().execute(packed).fetchall()
        return np.frombuffer(row[0] or b"", ">i8").astype(np.int64)

    def read_postings(self, terms: Sequence[str], weights: Weights) -> dict[str, Postings]:
        parameters = {"terms": as_json(terms), **dict(zip(_FIELDS, weights, strict=True))}
        with self.errors():
            rows = self.read().execute(self.sql("lexical")["postings"], parameters).fetchall()
        packed = {term: (keys, frequencies) for term, keys, frequencies in rows}
        return {term: _unpacked(*packed.get(term, (b"", b""))) for term in terms}

    def batches(self, sql: str, rows: int) -> Iterator[Sequence[Row]]:
        transaction = self.current()
        assert transaction is not None, "a cursor lives in a transaction"
        transaction.execute(_NO_IDLE_TIMEOUT)
        return transaction.batches(sql, rows)

    def mapped_index(self) -> MappedIndex | None:
        return self.index_files.current()

    def all_ids(self, fresh: bool = False) -> IdsByKey:
        """Return every id, 36 bytes each: looking one up costs a round trip per recall."""
        index = None if fresh else self.mapped_index()
        mapped = None if index is None else index.ids()
        return self._read_ids() if mapped is None else mapped

    def _read_ids(self) -> IdsByKey:
        with self.errors():
            sql, limits = (
                self.sql("memories")["all_ids"],
                {"length": UUID_LENGTH, "most": MAX_PACKED_IDS},
            )
            [(keys, ids)] = self.read().execute(sql, limits).fetchall()
        places = np.frombuffer(keys or b"", ">i8").astype(np.int64)
        found = np.zeros(int(places.max(initial=0)) + 1, f"S{UUID_LENGTH}")
        found[places] = np.frombuffer(ids or b"", f"S{UUID_LENGTH}")
        return found

    def encode_vector(self, vector: NDArray[np.float16]) -> str:
        return str(vector.tolist())

    def seen_by(self, user: str) -> TenantSeenByUser:
        return TenantSeenByUser(self, user)

    def size(self) -> int:
        with self.errors():
            row = self.read().execute(self.sql("memories")["size"]).fetchone()
        return int(row[0]) if row else 0

    def close(self) -> None:
        self._closed = True
        self.index_files.close()

    def set_up(
        self,
        connection: Connection,
        plans: PlanCacheMode = "auto",
        viewer: str = "",
        purpose: TransactionPurpose = "read",
    ) -> None:
        limit = f"{round(self.server.patience * 1000)}ms"
        connection.execute(_ENTER, (self.tenant, viewer, limit, purpose, plans))

    @contextmanager
    def _transaction(self, begin: str, kind: type[T], purpose: TransactionPurpose) -> Iterator[T]:
        current = self.read()
        if isinstance(current, kind):  # nested: join the outer transaction
            yield current
            return
        assert not isinstance(current, Transaction), (
            "a transaction on the queues cannot become a write"
        )
        self._local.erases = False
        try:
            with self.errors(), self._begun(begin, kind, purpose) as transaction:
                self._local.transaction = transaction
                try:
                    yield transaction
                    transaction.finish()
                finally:
                    self._local.transaction = None
                self._commit(transaction)
        finally:
            if self._local.erases:  # even if the commit's outcome is unknown
                self.index_files.remove_all()

    @contextmanager
    def _begun(self, begin: str, kind: type[T], purpose: TransactionPurpose) -> Iterator[T]:
        started = False
        for last in self.server.attempts():
            with self.server.connection() as connection:
                try:
                    with connection.pipeline() as pipeline:
                        connection.execute(begin)
                        self.set_up(connection, purpose=purpose)
                        transaction = kind(connection, pipeline)
                        pipeline.sync()
                        started = True
                        yield transaction
                except psycopg.Error as error:
                    if started and transaction.committed:
                        return  # the answer to the commit was lost, but the server confirmed it
                    if started or not may_retry(error, last):
                        raise
                finally:
                    roll_back(connection)
                if started:
                    return

    def _commit(self, transaction: Transaction) -> None:
        transaction.wait_for_answers()
        try:
            position = transaction.commit(tells_position=bool(self.server.replicas))
        except psycopg.Error as error:
            if not is_away(error):
                raise
            position = self._commit_outcome(transaction.id, transaction.life, error)
        transaction.committed = True
        self._written = max(self._written, position)
        choice = _choices.get().get(self)
        if choice:  # the caller must read its own write from the primary
            choice.replica = None

    def _commit_outcome(self, id: str | None, life: str, lost: psycopg.Error) -> int:
        """Ask the server what became of a commit whose answer was lost."""
        for last in self.server.attempts() if id else ():
            try:
                with self.server.connection() as connection:
                    row = connection.execute(
                        self.sql("memories")["fate"], {"transaction": id}
                    ).fetchone()
            except psycopg.Error as error:
                if not may_retry(error, last):
                    break
                continue
            status, position, same = (row[0], row[1], row[2] == life) if row else (None, 0, False)
            if same and status == "committed":
                return int(position)
            if same and status == "aborted":
                raise lost
            if not same or status is None or time.monotonic() > last:
                break
        raise UnknownFate(unknown_outcome(self.name)) from lost


class TenantSeenByUser(ViewerDatabase):
    """A tenant seen by one user; the server hides other memories.

    The store checks writes, whose transaction must see hidden rows.
    """

    def __init__(self, whole: Database, viewer: str) -> None:
        super().__init__(whole, viewer)
        self._tenant = whole
        self._reader = whole.reader(viewer)

    def read(self) -> AutocommitReader | Transaction:
        return self._tenant.current() or self._reader


def _unpacked(keys: bytes, frequencies: bytes) -> Postings:
    return Postings(
        np.frombuffer(keys, ">i8").astype(np.int64),
        np.frombuffer(frequencies, ">f8").astype(np.float64),
    )
