"""Removes a tenant's rows from a cell: an old copy after a move, or a new one that was given up."""

from __future__ import annotations

from trivet.errors import Conflict, StoreError
from trivet.store.postgres.cells.side import SQL, Side, leaving
from trivet.store.postgres.cells.tables import tables
from trivet.store.postgres.connection_pool import Connection
from trivet.store.postgres.erase import MARK, erase
from trivet.store.postgres.index_files import disown
from trivet.store.postgres.server import Server
from trivet.store.relational.index_files import files_in, remove

# Not found among the tables that are copied; the order matters, what refers to another goes first.
_MADE_ANEW = ("posting",)


def forget_moved(old: Server, new: Server, tenant: str) -> str | None:
    """Removes the copy that a tenant left behind. Its row stays and says where it went. What is pending, or None."""
    source, target = Side(old, tenant), Side(new, tenant)
    row = source.row()
    noted = leaving(row)
    if row is None or row["standing"] != "moved" or noted is None:
        raise Conflict(f"{tenant} has not moved away from {old.address}. Nothing was removed.")
    if new.cell != noted.cell:
        raise Conflict(f"{tenant} went to {row['moved_to']}, and not to {new.address}. Nothing was removed.")
    there = target.row()
    if there is None or there["standing"] == "arriving":
        raise StoreError(f"{tenant} has not arrived at {new.address}. Nothing was removed; finish its move first.")
    return remove_rows(source)


def remove_files(side: Side) -> None:
    """Index files of the tenant as it was there, on this machine; others remove theirs when they look."""
    for file in files_in(side.server.index_folder.of(side.server.cell, side.tenant)):
        remove(file)


def has_rows(connection: Connection) -> bool:
    row = connection.execute("SELECT EXISTS (SELECT 1 FROM memory) OR EXISTS (SELECT 1 FROM audit)").fetchone()
    return bool(row and row[0])


def remove_rows(side: Side) -> str | None:
    """All but the tenant's own row, table by table, and out of the files. What of that is still pending."""
    with side.transaction() as connection:
        every = [*_MADE_ANEW, *(one.name for one in reversed(tables(connection))), "embedding_model"]
    mark = None
    for name in every:
        with side.transaction() as connection:
            if connection.execute(f"DELETE FROM {name}").rowcount:
                row = connection.execute(MARK).fetchone()
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
