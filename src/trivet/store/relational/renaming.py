"""A concept known by another name only: once no memory holds its own name, it goes by one that memories still hold."""

from __future__ import annotations

from collections.abc import Iterable

from trivet.store.relational.database import Connection
from trivet.store.relational.rows import as_json

# What the other concept has already goes first; then everything of this one becomes the other's.
_MOVES = (
    "clear_mentions", "move_mentions", "clear_sources", "move_sources", "clear_targets", "move_targets",
    "delete_circles", "delete_concept",
)  # fmt: skip


def rename_unowned(connection: Connection, concepts: Iterable[int]) -> None:
    """For these concepts. What was forgotten or purged must not live on as the name of what another memory means."""
    sql = connection.sql("triples")
    for row in connection.execute(sql["unowned"], {"concepts": as_json(concepts)}).fetchall():
        if not row["held"]:
            continue
        names = {"concept": row["concept"], "name": row["held"]}
        taken = connection.execute(sql["concept_of_name"], names).fetchone()
        if taken is None:
            connection.execute(sql["rename"], names)
        else:
            _move(connection, row["concept"], taken["concept"])


def _move(connection: Connection, concept: int, other: int) -> None:
    sql = connection.sql("triples")
    moved = {"concept": concept, "other": other}
    memories = connection.execute(sql["memories_of_concept"], moved).fetchall()
    for name in _MOVES:
        connection.execute(sql[name], moved)
    for row in memories:
        connection.note_change(row["memory"])
