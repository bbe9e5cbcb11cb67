"""Takes purged words out of the tables for good: PostgreSQL keeps deleted rows in its files until they are vacuumed.

A tenant in one cell, whatever its standing there: what a move reads and writes of the tenant's row.

What of a tenant moves: the rows of every table that has tenants, found in the database itself, so none is forgotten.

Copied as they are: all that users wrote or that belongs to it (memories, revisions, links, shares, accounts, keys,
secrets as they are sealed, the audit record, proposals, feedback, what laptops need), and what is derived but costs
much to make (vectors, graph, fingerprints) or is queued. Made anew: postings, out of `lexical`, and an index over many
vectors.

Removes a tenant's rows from a cell: an old copy after a move, or a new one that was given up.
"""

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

# Those that hold words of memories, or what was made of them.
PURGED_TABLES = (
    "memory", "memory_tag", "revision", "lexical", "posting", "passage", "mention", "statement", "concept", "secret",
    "proposal", "feedback", "vault_part",
)  # fmt: skip
VACUUM_PENDING = (
    "Its words are in the files of the database until the next vacuum, which was asked for."
)
READER_PENDING = "Its words are in the files of the database: a transaction that began before has not ended. They go after it."
OWNER_PENDING = (
    "Its words are in the files of the database until it is vacuumed, which this role may not do. Autovacuum does it "
    f"in time; at once, the owner of the tables does: VACUUM (INDEX_CLEANUP ON) {', '.join(PURGED_TABLES)}"
)

# Which transaction purged, and when.
PURGE_MARK = (
    "SELECT pg_current_xact_id()::xid::text || ' ' || extract(epoch FROM clock_timestamp())"
)
# A deleted row can go when no snapshot is older than its deletion.
_OLDER_SNAPSHOTS = "SELECT count(*) FROM pg_stat_activity WHERE age(backend_xmin) >= age(%s::xid)"
# With every index: otherwise PostgreSQL leaves the words in indexes while there are few. It waits for nobody.
_VACUUM = f"VACUUM (INDEX_CLEANUP ON, SKIP_LOCKED, TRUNCATE OFF) {', '.join(PURGED_TABLES)}"
_NOT_VACUUMED = """
SELECT count(*) FROM pg_stat_user_tables WHERE relname = ANY(%s)
AND coalesce(greatest(last_vacuum, last_autovacuum), '-infinity') < to_timestamp(%s)
"""


def erase(connection: Connection, mark: str) -> str | None:
    """Vacuums after the purge that set the mark. What is still pending; None if nothing is."""
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
    """The move of a tenant out of its home. `cell` and `address` are those of the new one."""

    id: str
    cell: str
    address: str
    begun: str
    freeze: int = 0  # how often it was frozen: a process that froze it before cannot take this freeze for its own

    @classmethod
    def to(cls, server: Server) -> DepartingMove:
        return cls(id=new_id(), cell=server.cell, address=server.address, begun=now())


class ArrivingMove(msgspec.Struct, frozen=True, kw_only=True):
    """The same move where the tenant arrives. `cell` and `address` are those of the old home."""

    id: str
    cell: str
    address: str
    # What was changed by this transaction of the old home or a later one is to be read again. Empty: everything.
    watermark: str
    life: str  # the timeline of the old home: after a failover some of what was read may never have been
    table: str = ""  # as far as the first copy is: this table,
    after: int = 0  # up to this key
    copied: bool = False
    complete: int = 0  # everything is here as it was in this freeze


class TenantInCell:
    """Every transaction is the tenant's own, so that row-level security binds a move like everybody."""

    def __init__(self, server: Server, tenant: str) -> None:
        self.server = server
        self.tenant = tenant
        self.name = f"{server.name} (tenant {tenant})"

    @contextmanager
    def transaction(self, isolated: bool = False) -> Iterator[Connection]:
        """With `isolated` all of its reads see one moment, which begins with the first of them."""
        with self.server.errors(), self.server.connection() as connection, connection.transaction():
            if isolated:  # SET, unlike SELECT, does not begin the moment
                connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                connection.execute(
                    sql.SQL("SET LOCAL trivet.tenant = {}").format(sql.Literal(self.tenant))
                )
            else:
                connection.execute(SQL["enter"], self.server.enter_parameters(self.tenant))
            yield connection

    def row(self) -> Row | None:
        """The tenant's row as it is now: its standing, its move."""
        with self.transaction() as connection:
            return connection.execute(SQL["standing"]).fetchone()


SQL: Mapping[str, str] = QUERIES("cells")


def encoded(move: DepartingMove | ArrivingMove) -> str:
    return msgspec.json.encode(move).decode()


def leaving(row: Row | None) -> DepartingMove | None:
    """The move out of this cell that a tenant's row tells of."""
    is_leaving = row is not None and row["move"] and row["standing"] != "arriving"
    return msgspec.json.decode(row["move"], type=DepartingMove) if is_leaving and row else None


def arriving(row: Row | None) -> ArrivingMove | None:
    is_arriving = row is not None and row["standing"] == "arriving"
    return msgspec.json.decode(row["move"], type=ArrivingMove) if is_arriving and row else None


# Where a tenant is, and what is made anew. Models are matched by what they are, since each database numbers its own.
NOT_COPIED = frozenset(("tenant", "directory", "posting", "embedding_model"))
# A database gives these numbers itself, across tenants; what makes the row one of its kind is the rest.
LOCALLY_NUMBERED = {"statement": ("source", "relation", "target", "memory", "valid_from")}
# Rows are counted by so many keys together: where the counts differ, the keys themselves are compared.
KEYS_PER_BUCKET = 1_024
# What is still to be erased from the files concerns the files of one database, and so do the names of index files.
_WITHIN = {"meta": f"name != '{ERASING}' AND NOT {OF_ONE_DATABASE}"}


class Parent(msgspec.Struct, frozen=True):
    """A table that rows refer to, by which columns of theirs and of its own."""

    table: str
    columns: tuple[str, ...]
    target: tuple[str, ...]


class Table(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    number: str | None  # a column of the key that counts up
    parents: tuple[Parent, ...] = ()

    @property
    def within(self) -> str:
        return _WITHIN.get(self.name, "true")

    @property
    def bucket(self) -> str:
        return f"{self.number} / {KEYS_PER_BUCKET}" if self.number else "0::bigint"

    def listed(self, columns: Sequence[str], models: Mapping[int, int] | None = None) -> str:
        """The columns for a query; with `models` the numbers of models as the other database has them."""
        return ", ".join(
            _translated(models) if one == "model" and models is not None else one for one in columns
        )


def tables(connection: Connection) -> list[Table]:
    """In the order in which they refer to each other."""
    rows = [dict(zip(row.places, row, strict=True)) for row in connection.execute(SQL["tables"])]
    found = [_table(row) for row in rows if row["name"] not in NOT_COPIED]
    ordered: list[Table] = []
    while found:
        names = {one.name for one in found}
        free = [
            one
            for one in found
            if not {parent.table for parent in one.parents} & (names - {one.name})
        ]
        assert free, "tables do not refer to each other in a circle"
        ordered += free
        found = [one for one in found if one not in free]
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


def _parent(told: Mapping[str, str | list[str]]) -> Parent:
    columns = tuple(one for one in told["columns"] if one != "tenant")
    return Parent(
        str(told["table"]), columns, tuple(one for one in told["target"] if one != "tenant")
    )


def _translated(models: Mapping[int, int]) -> str:
    """NULL for a model that came after the models were read."""
    cases = " ".join(f"WHEN {old} THEN {new}" for old, new in models.items())
    return f"CASE model {cases} END::bigint AS model" if models else "NULL::bigint AS model"


# Not found among the tables that are copied; the order matters, what refers to another goes first.
_REBUILT_TABLES = ("posting",)


def remove_files(side: TenantInCell) -> None:
    """Index files of the tenant as it was there, on this machine; others remove theirs when they look."""
    for file in files_in(side.server.index_folder.of(side.server.cell, side.tenant)):
        remove_index_file(file)


def has_rows(connection: Connection) -> bool:
    row = connection.execute(
        "SELECT EXISTS (SELECT 1 FROM memory) OR EXISTS (SELECT 1 FROM audit)"
    ).fetchone()
    return bool(row and row[0])


def remove_rows(side: TenantInCell) -> str | None:
    """All but the tenant's own row, table by table, and out of the files. What of that is still pending."""
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
        disown(connection)  # one that is being written is not named when the tenant is back
    with side.server.errors(), side.server.connection() as connection:
        return erase(connection, mark)
