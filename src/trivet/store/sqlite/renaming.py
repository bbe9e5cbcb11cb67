"""A concept known by another name only: once no memory holds its own name, it goes by one that memories still hold."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from trivet.store.sqlite.changes import note_change
from trivet.store.sqlite.queries import queries
from trivet.store.sqlite.rows import as_json


def rename_unowned(connection: sqlite3.Connection, concepts: Iterable[int]) -> None:
    """For these concepts. What was forgotten or purged must not live on as the name of what another memory means."""
    sql = queries("triples")
    for row in connection.execute(sql["unowned"], {"concepts": as_json(concepts)}).fetchall():
        if not row["held"]:
            continue
        names = {"concept": row["concept"], "name": row["held"]}
        taken = connection.execute(sql["concept_of_name"], names).fetchone()
        if taken is None:
            connection.execute(sql["rename"], names)
        else:
            _move(connection, row["concept"], taken["concept"])


def _move(connection: sqlite3.Connection, concept: int, other: int) -> None:
    sql = queries("triples")
    moved = {"concept": concept, "other": other}
    memories = connection.execute(sql["memories_of_concept"], moved).fetchall()
    for name in ("move_mentions", "move_sources", "move_targets", "delete_circles", "delete_concept"):
        connection.execute(sql[name], moved)
    for row in memories:
        note_change(connection, row["memory"])
