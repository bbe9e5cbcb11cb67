"""What a memory leaves in the graph, and how it is taken out again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from trivet.store.sqlite.queries import queries
from trivet.store.sqlite.renaming import rename_unowned
from trivet.store.sqlite.rows import as_json


def clear_graph(connection: sqlite3.Connection, key: int) -> None:
    """Takes everything out of the graph that is there because of one memory."""
    sql = queries("graph")
    concepts = [row[0] for row in connection.execute(sql["concepts_of_memory"], {"key": key}).fetchall()]
    for name in ("cancel", "delete_statements", "delete_mentions"):
        connection.execute(sql[name], {"key": key})
    drop_orphans(connection, concepts)


def drop_orphans(connection: sqlite3.Connection, concepts: Iterable[int]) -> None:
    """Concepts that nothing mentions any more: the name of what was forgotten must not stay behind."""
    touched = list(concepts)
    connection.execute(queries("graph")["delete_orphans"], {"concepts": as_json(touched)})
    rename_unowned(connection, touched)
