"""A tenant's tables and row in one cell, and removal of its data with a vacuum."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
import psycopg
from psycopg import sql

from trivet.common.clock import now
from trivet.common.ids import new_id
from trivet.store.postgres.connections import QUERIES, Connection, Row
from trivet.store.postgres.index_files import OF_ONE_DATABASE, disown
from trivet.store.postgres.server import Server
from trivet.store.relational.database import ERASING
from trivet.store.relational.index.index_files import files_in, remove_index_file

# Words of memories, or data derived from them.
PURGED_TABLES = (
    "memory", "memory_tag", "revision", "lexical", "posting", "passage", "mention", "statement",
    "concept", "secret", "proposal", "feedback", "vault_part",
)  # fmt: skip
VACUUM_PENDING = (
    "Its words remain in the files of the database until the next vacuum, which was requested."
)
READER_PENDING = (
    "Its words remain in the files of the database: an earlier transaction has not ended. "
    "They are removed after it ends."
)
OWNER_PENDING = (
    "Its words remain in the files of the database until it is vacuumed, which this role may not "
    "do. Autovacuum does it eventually. To do it now, run as the owner of the tables: "
    f"VACUUM (INDEX_CLEANUP ON) {', '.join(PURGED_TABLES)}"
)

PURGE_MARK = (
    "SELECT pg_current_xact_id()::xid::text || ' ' || extract(epoch FROM clock_timestamp())"
)
# A deleted row stays while an older snapshot exists.
_OLDER_SNAPSHOTS = "SELECT count(*) FROM pg_stat_activity WHERE age(backend_xmin) >= age(%s::xid)"
# INDEX_CLEANUP, since PostgreSQL otherwise may leave purged words in indexes.
_VACUUM = f"VACUUM (INDEX_CLEANUP ON, SKIP_LOCKED, TRUNCATE OFF) {', '.join(PURGED_TABLES)}"
_NOT_VACUUMED = """
SELECT count(*) FROM pg_stat_user_tables WHERE relname = ANY(%s)
AND coalesce(greatest(last_vacuum, last_autovacuum), '-infinity') < to_timestamp(%s)
"""


def erase(connection: Connection, mark: str) -> str | None:
    transaction, moment = mark.split()
    if _count(connection, _OLDER_SNAPSHOTS, (transaction,)):
        return READER_PENDING
    connection.execute(_VACUUM)
    return (
        OWNER_PENDING
        if _count(connection, _NOT_VACUUMED, (list(PURGED_TABLES), float(moment)))
        else None
    )


def _count(
    connection: psycopg.Connection[tuple[int, ...]] | Connection,
    sql: str,
    values: tuple[object, ...],
) -> int:
    row = connection.execute(sql, values).fetchone()
    return int(row[0]) if row else 0


class DepartingMove(msgspec.Struct, frozen=True, kw_only=True):
    """A move seen from the old home; `cell` and `address` are the new one's."""

    id: str
    cell: str
    address: str
    begun: str
    # Number of the freeze: an earlier freezer must not take it for its own.
    freeze: int = 0

    @classmethod
    def to(cls, server: Server) -> DepartingMove:
        return cls(id=new_id(), cell=server.cell, address=server.address, begun=now())


class ArrivingMove(msgspec.Struct, frozen=True, kw_only=True):
    """A move seen from the new home; `cell` and `address` are the old one's."""

    id: str
    cell: str
    address: str
    # Rows written by this transaction or later are read again; if empty, all rows.
    watermark: str
    life: str  # timeline of the old home: a failover may have undone what was read
    table: str = ""  # first copy: the table in progress
    after: int = 0  # first copy: the last key copied
    copied: bool = False
    complete: int = 0  # the freeze whose state was copied completely


class TenantInCell:
    """A tenant in one cell, in any state; row-level security also binds moves."""

    def __init__(self, server: Server, tenant: str) -> None:
        self.server = server
        self.tenant = tenant
        self.name = f"{server.name} (tenant {tenant})"

    @contextmanager
    def transaction(self, isolated: bool = False) -> Iterator[Connection]:
        """Open a transaction; with `isolated`, all reads see one moment."""
        with self.server.errors(), self.server.connection() as connection, connection.transaction():
            if isolated:  # SET, unlike SELECT, does not take the snapshot
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                connection.execute(
                    sql.SQL("SET LOCAL trivet.tenant = {}").format(sql.Literal(self.tenant))
                )
            else:
                connection.execute(SQL["enter"], self.server.enter_parameters(self.tenant))
            yield connection

    def row(self) -> Row | None:
        with self.transaction() as connection:
            return connection.execute(SQL["standing"]).fetchone()


SQL: Mapping[str, str] = QUERIES("cells")


def encoded(move: DepartingMove | ArrivingMove) -> str:
    return msgspec.json.encode(move).decode()


def leaving(row: Row | None) -> DepartingMove | None:
    is_leaving = row is not None and row["move"] and row["standing"] != "arriving"
    return msgspec.json.decode(row["move"], type=DepartingMove) if is_leaving and row else None


def arriving(row: Row | None) -> ArrivingMove | None:
    is_arriving = row is not None and row["standing"] == "arriving"
    return msgspec.json.decode(row["move"], type=ArrivingMove) if is_arriving and row else None


# Local to a database, rebuilt, or matched by identity (models).
NOT_COPIED = frozenset(("tenant", "directory", "posting", "embedding_model"))
# Numbers that each database assigns, with what identifies the row.
LOCALLY_NUMBERED = {"statement": ("source", "relation", "target", "memory", "valid_from")}
# Where counts of this many keys differ, the keys are compared.
KEYS_PER_BUCKET = 1_024
# Excludes rows about the files of one database.
_WITHIN = {"meta": f"name != '{ERASING}' AND NOT {OF_ONE_DATABASE}"}


class Parent(msgspec.Struct, frozen=True):
    table: str
    columns: tuple[str, ...]
    target: tuple[str, ...]


class Table(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    number: str | None  # an increasing column of the key
    parents: tuple[Parent, ...] = ()

    @property
    def within(self) -> str:
        return _WITHIN.get(self.name, "true")

    @property
    def bucket(self) -> str:
        return f"{self.number} / {KEYS_PER_BUCKET}" if self.number else "0::bigint"

    def listed(self, columns: Sequence[str], models: Mapping[int, int] | None = None) -> str:
        return ", ".join(
            _translated(models) if column == "model" and models is not None else column
            for column in columns
        )


def tables(connection: Connection) -> list[Table]:
    """Return the tables, each after those it refers to."""
    rows = [dict(zip(row.places, row, strict=True)) for row in connection.execute(SQL["tables"])]
    found = [_table(row) for row in rows if row["name"] not in NOT_COPIED]
    ordered: list[Table] = []
    while found:
        names = {table.name for table in found}
        free = [
            table
            for table in found
            if not {parent.table for parent in table.parents} & (names - {table.name})
        ]
        assert free, "the tables have no reference cycle"
        ordered += free
        found = [table for table in found if table not in free]
    return ordered


def _table(row: Mapping[str, Any]) -> Table:
    name = str(row["name"])
    own = LOCALLY_NUMBERED.get(name)
    key = own or tuple(one for one in row["key"] if one != "tenant")
    left_out = {"tenant", name} if own else {"tenant"}
    return Table(
        name=name,
        columns=tuple(one for one in row["columns"] if one not in left_out),
        key=key,
        number=next(
            (one for one in ("memory", key[0]) if one in key and one in row["numbers"]), None
        ),
        parents=tuple(_parent(one) for one in row["parents"]),
    )


def _parent(row: Mapping[str, str | list[str]]) -> Parent:
    columns = tuple(one for one in row["columns"] if one != "tenant")
    return Parent(
        str(row["table"]), columns, tuple(one for one in row["target"] if one != "tenant")
    )


def _translated(models: Mapping[int, int]) -> str:
    cases = " ".join(f"WHEN {old} THEN {new}" for old, new in models.items())
    return f"CASE model {cases} END::bigint AS model" if models else "NULL::bigint AS model"


# Emptied before those they refer to.
_REBUILT_TABLES = ("posting",)


def remove_files(side: TenantInCell) -> None:
    for file in files_in(side.server.index_folder.of(side.server.cell, side.tenant)):
        remove_index_file(file)


def has_rows(connection: Connection) -> bool:
    row = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM memory) OR EXISTS (SELECT 1 FROM audit)"
    ).fetchone()
    return bool(row and row[0])


def remove_rows(side: TenantInCell) -> str | None:
    """Delete all but the tenant's own row, and return what is still pending."""
    with side.transaction() as connection:
        every = [
            *_REBUILT_TABLES,
            *(one.name for one in reversed(tables(connection))),
            "embedding_model",
        ]
    mark = None
    for name in every:
        with side.transaction() as connection:
            if connection.execute(f"DELETE FROM {name}").rowcount:
                row = connection.execute(PURGE_MARK).fetchone()
                assert row is not None
                mark = str(row[0])
    remove_files(side)
    if mark is None:
        return None
    with side.transaction() as connection:
        connection.execute(SQL["count_on"], {"last_key": 0, "last_concept": 0, "last_change": 0})
        disown(connection)  # a file being written must not be adopted if the tenant returns
    with side.server.errors(), side.server.connection() as connection:
        return erase(connection, mark)
