"""What a memory leaves in the graph, and how it is taken out again."""

from __future__ import annotations

from collections.abc import Iterable

from trivet.store.relational.database import Connection
from trivet.store.relational.renaming import rename_unowned
from trivet.store.relational.rows import as_json


def clear_graph(connection: Connection, key: int) -> None:
    """Takes everything out of the graph that is there because of one memory."""
    sql = connection.sql("graph")
    concepts = [row[0] for row in connection.execute(sql["concepts_of_memory"], {"key": key}).fetchall()]
    for name in ("cancel", "delete_statements", "delete_mentions"):
        connection.execute(sql[name], {"key": key})
    drop_orphans(connection, concepts)


def drop_orphans(connection: Connection, concepts: Iterable[int]) -> None:
    """Concepts that nothing mentions any more: the name of what was forgotten must not stay behind."""
    touched = list(concepts)
    connection.execute(connection.sql("graph")["delete_orphans"], {"concepts": as_json(touched)})
    rename_unowned(connection, touched)
