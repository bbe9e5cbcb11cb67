"""What is said to hold between concepts at a moment, in the light of everything the caller may see."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trivet.store.relational.database import Connection
from trivet.store.relational.known_concepts import timeless
from trivet.store.relational.rows import as_json
from trivet.types import Filter, GraphEdge


class Statement(msgspec.Struct, frozen=True):
    source: int
    target: int
    relation: str
    weight: float
    valid_from: str
    valid_to: str | None
    recorded_at: str
    evidence: str
    ended_by: str | None

    def edge(self, source: str, target: str) -> GraphEdge:
        return GraphEdge(
            kind="statement",
            source=source,
            target=target,
            relation=self.relation,
            weight=self.weight,
            valid_from=self.valid_from,
            valid_to=self.valid_to,
            recorded_at=self.recorded_at,
            evidence=self.evidence,
            ended_by=self.ended_by,
        )


def held_statements(connection: Connection, concepts: Sequence[int], filter: Filter, moment: str) -> list[Statement]:
    """Those that start or end at one of the concepts.

    As the view `held` tells it, but by what the caller may see: what a memory of another scope says ends nothing here.
    """
    parameters = {**timeless(filter), "concepts": as_json(concepts), "at": moment}
    rows = connection.execute(connection.sql.within("concepts", "statements"), parameters).fetchall()
    ends = _ends(connection, [row["statement"] for row in rows], filter)
    found = []
    for row in rows:
        valid_to, ended_by = ends.get(row["statement"], (None, None))
        if valid_to is None or valid_to > moment:
            found.append(
                Statement(
                    row["source"], row["target"], row["relation"], row["weight"], row["valid_from"], valid_to,
                    row["recorded_at"], row["evidence"], ended_by,
                )
            )  # fmt: skip
    return found


def _ends(connection: Connection, statements: Sequence[int], filter: Filter) -> dict[int, tuple[str, str | None]]:
    """The first end of each statement, and the memory that brought it about, if it was one."""
    if not statements:
        return {}
    sql = connection.sql.within("concepts", "ends").replace("{statements}", ",".join(map(str, statements)))
    first: dict[int, tuple[str, str | None]] = {}
    for statement, ends_at, ended_by in connection.execute(sql, timeless(filter)):
        known = first.get(statement)
        if known is None or _order(ends_at, ended_by) < _order(*known):
            first[statement] = (ends_at, ended_by)
    return first


def _order(ends_at: str, ended_by: str | None) -> tuple[str, bool, str]:
    """Of two ends at the same time the one that names a memory says more."""
    return ends_at, ended_by is None, ended_by or ""
