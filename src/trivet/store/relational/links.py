"""Typed links between memories."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.errors import Conflict, NotFound
from trivet.store.relational.database import Connection, Database
from trivet.store.relational.memories import restate
from trivet.store.relational.rows import as_json
from trivet.types import Link, LinkKind


class RelationalLinks:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.sql("links")

    def add(self, link: Link) -> bool:
        """Whether the link is new."""
        with self._database.write() as connection:
            source, target = self._key(connection, link.source), self._key(connection, link.target)
            if link.kind != "see-also" and self._reaches(connection, target, source, link.kind):
                raise Conflict(
                    f"{link.source} {link.kind} {link.target} would close a circle: "
                    f"the target already leads to the source by {link.kind}. Nothing was written."
                )
            values = {"source": source, "kind": link.kind, "target": target, "created_at": link.created_at}
            new = connection.execute(self._sql["insert"], values).rowcount > 0
            if new:
                self._after_change(connection, link.kind, source, target)
        return new

    def remove(self, source: str, kind: LinkKind, target: str) -> None:
        with self._database.write() as connection:
            keys = {"source": self._key(connection, source), "target": self._key(connection, target)}
            removed = connection.execute(self._sql["delete"], {**keys, "kind": kind}).rowcount
            if not removed:
                raise NotFound(f"There is no link {source} {kind} {target}. `get` shows the links of a memory.")
            self._after_change(connection, kind, keys["source"], keys["target"])

    def touching(self, ids: Sequence[str]) -> tuple[Link, ...]:
        return self._select("touching", {"ids": as_json(ids)})

    def to_targets(self, ids: Sequence[str], kind: LinkKind) -> tuple[Link, ...]:
        return self._select("to_targets", {"ids": as_json(ids), "kind": kind})

    def from_sources(self, ids: Sequence[str], kind: LinkKind) -> tuple[Link, ...]:
        return self._select("from_sources", {"ids": as_json(ids), "kind": kind})

    def everything(self) -> tuple[Link, ...]:
        return self._select("everything", {})

    def _select(self, name: str, parameters: dict[str, str]) -> tuple[Link, ...]:
        with self._database.errors():
            rows = self._database.read().execute(self._sql[name], parameters).fetchall()
        return tuple(Link(kind=row[0], source=row[1], target=row[2], created_at=row[3]) for row in rows)

    def _key(self, connection: Connection, id: str) -> int:
        row = connection.execute(connection.sql("memories")["by_id"], {"id": id}).fetchone()
        if row is None:
            raise NotFound(f"There is no memory {id} in this store, so it cannot be linked.")
        return int(row["key"])

    def _reaches(self, connection: Connection, start: int, goal: int, kind: LinkKind) -> bool:
        parameters = {"start": start, "goal": goal, "kind": kind}
        return connection.execute(self._sql["reaches"], parameters).fetchone() is not None

    def _after_change(self, connection: Connection, kind: LinkKind, source: int, target: int) -> None:
        if kind == "supersedes":
            restate(connection, target)
        for key in (source, target):
            connection.note_change(key)
