"""Typed links between memories."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from trivet.clock import moment, stamp
from trivet.errors import Conflict, Forbidden, NotFound
from trivet.memory_fields import as_json
from trivet.store.relational.audit import note_write
from trivet.store.relational.changes import Changes
from trivet.store.relational.database import Connection, Database, Part, Row, WriteTransaction
from trivet.store.relational.memories import restate
from trivet.types import Link, LinkKind


class AnyLinks:
    """Whether a store has links at all. Most have none, and then no answer need ask for them."""

    file = "links"
    query = "any"

    def __init__(self, database: Database, changes: Changes) -> None:
        self._database = database
        self._changes = changes
        self._known: tuple[int, bool] | None = None  # as of which change

    def __call__(self) -> bool:
        """A link that is made or removed is a change of the memories at its ends."""
        last, known = self._changes.last(), self._known
        if known is None or self._changes.since(known[0]) != []:
            with self._database.errors():
                row = self._database.read().execute(self._database.sql(self.file)[self.query]).fetchone()
            known = self._known = (last, bool(row[0]))
        return known[1]


class Links(Part):
    file = "links"

    def __init__(self, database: Database, any_links: AnyLinks) -> None:
        super().__init__(database)
        self._any_links = any_links
        self._viewer = database.viewer

    def add(self, link: Link) -> bool:
        """Whether the link is new."""
        with self._database.write() as connection:
            source, target = self._key(connection, link.source), self._key(connection, link.target)
            self._check_rights(connection, link.kind, source, target)
            if link.kind != "see-also" and self._reaches(connection, target, source, link.kind):
                raise Conflict(
                    f"{link.source} {link.kind} {link.target} would close a circle: "
                    f"the target already leads to the source by {link.kind}. Nothing was written."
                )
            values = {"source": source, "kind": link.kind, "target": target, "created_at": stamp(link.created_at)}
            new = connection.execute(self._sql["insert"], values).rowcount > 0
            if new:
                self._after_change(connection, link.kind, source, target)
                note_write(connection, self._viewer, "link", [link.source], f"{link.kind} {link.target}")
        return new

    def remove(self, source: str, kind: LinkKind, target: str) -> None:
        with self._database.write() as connection:
            keys = {"source": self._key(connection, source), "target": self._key(connection, target)}
            self._check_rights(connection, kind, keys["source"], keys["target"])
            removed = connection.execute(self._sql["delete"], {**keys, "kind": kind}).rowcount
            if not removed:
                raise NotFound(f"There is no link {source} {kind} {target}. `get` shows the links of a memory.")
            self._after_change(connection, kind, keys["source"], keys["target"])
            note_write(connection, self._viewer, "unlink", [source], f"{kind} {target}")

    def touching(self, ids: Sequence[str]) -> tuple[Link, ...]:
        return self._select("touching", ids=as_json(ids))

    def to_targets(self, ids: Sequence[str], kind: LinkKind) -> tuple[Link, ...]:
        return self._select("to_targets", ids=as_json(ids), kind=kind)

    def from_sources(self, ids: Sequence[str], kind: LinkKind) -> tuple[Link, ...]:
        return self._select("from_sources", ids=as_json(ids), kind=kind) if self._any_links() else ()

    def everything(self) -> tuple[Link, ...]:
        return self._select("everything")

    def readable(self, damaged: Callable[[str], object]) -> Iterator[Link]:
        """Every link that can be read; of each that cannot, the memory it starts from is named to `damaged`."""
        for row in self._rows("everything", viewer=self._viewer):
            try:
                yield _link(row)
            except (ValueError, TypeError):
                damaged(f"a link of {row[1]}")

    def _select(self, name: str, **values: str) -> tuple[Link, ...]:
        """Between memories that may both be seen."""
        rows = self._rows(name, **values, viewer=self._viewer)
        return tuple(_link(row) for row in rows)

    def _key(self, connection: Connection, id: str) -> int:
        values = {"id": id, "viewer": self._viewer}
        row = connection.execute(connection.sql("memories")["seen_by_id"], values).fetchone()
        if row is None:
            raise NotFound(f"There is no memory {id} in this store, so it cannot be linked.")
        return int(row["key"])

    def _check_rights(self, connection: Connection, kind: LinkKind, source: int, target: int) -> None:
        """A link is said of its source. To supersede hides the target, which is its owner's business alone."""
        if self._viewer is None:
            return
        sql, viewer = connection.sql("visible"), {"viewer": self._viewer}
        if not connection.execute(sql["writable"], {"key": source, **viewer}).fetchone():
            raise Forbidden("A memory that is shared with you for reading cannot be linked so. Nothing was changed.")
        if kind == "supersedes" and not connection.execute(sql["owned"], {"key": target, **viewer}).fetchone():
            raise Forbidden("Only its owner can have a memory superseded. Nothing was changed.")

    def _reaches(self, connection: Connection, start: int, goal: int, kind: LinkKind) -> bool:
        parameters = {"start": start, "goal": goal, "kind": kind}
        return connection.execute(self._sql["reaches"], parameters).fetchone() is not None

    def _after_change(self, connection: WriteTransaction, kind: LinkKind, source: int, target: int) -> None:
        if kind == "supersedes":
            restate(connection, target)
        for key in (source, target):
            connection.note_change(key)


def _link(row: Row) -> Link:
    return Link(kind=row[0], source=row[1], target=row[2], created_at=moment(row[3]))
