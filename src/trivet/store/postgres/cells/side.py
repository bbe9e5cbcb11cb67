"""A tenant in one cell, whatever its standing there: what a move reads and writes of the tenant's row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec
from psycopg import sql

from trivet.clock import now
from trivet.ids import new_id
from trivet.store.postgres.connection_pool import Connection, Row
from trivet.store.postgres.dialect import QUERIES

if TYPE_CHECKING:
    from trivet.store.postgres.server import Server


class Leaving(msgspec.Struct, frozen=True, kw_only=True):
    """The move of a tenant out of its home. `cell` and `address` are those of the new one."""

    id: str
    cell: str
    address: str
    begun: str
    freeze: int = 0  # how often it was frozen: a process that froze it before cannot take this freeze for its own

    @classmethod
    def to(cls, server: Server) -> Leaving:
        return cls(id=new_id(), cell=server.cell, address=server.address, begun=now())


class Arriving(msgspec.Struct, frozen=True, kw_only=True):
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


class Side:
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
                connection.execute(sql.SQL("SET LOCAL trivet.tenant = {}").format(sql.Literal(self.tenant)))
            else:
                connection.execute(SQL["enter"], self.server.entering(self.tenant))
            yield connection

    def row(self) -> Row | None:
        """The tenant's row as it is now: its standing, its move."""
        with self.transaction() as connection:
            return connection.execute(SQL["standing"]).fetchone()


SQL: Mapping[str, str] = QUERIES("cells")


def encoded(move: Leaving | Arriving) -> str:
    return msgspec.json.encode(move).decode()


def leaving(row: Row | None) -> Leaving | None:
    """The move out of this cell that a tenant's row tells of."""
    is_leaving = row is not None and row["move"] and row["standing"] != "arriving"
    return msgspec.json.decode(row["move"], type=Leaving) if is_leaving and row else None


def arriving(row: Row | None) -> Arriving | None:
    is_arriving = row is not None and row["standing"] == "arriving"
    return msgspec.json.decode(row["move"], type=Arriving) if is_arriving and row else None
