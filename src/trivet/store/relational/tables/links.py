"""Typed links, and likely updates found by comparing memories.

The queue of updates needs no leases: concurrent comparisons write the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from trivet.common.clock import moment, stamp
from trivet.errors import Conflict, Forbidden, NotFound
from trivet.memory_fields import as_json
from trivet.store.records import LikelyUpdate, Model, PendingComparison
from trivet.store.relational.changes import Changes
from trivet.store.relational.database import Connection, Database, Row, StorePart, WriteTransaction
from trivet.store.relational.tables.ledgers import record_write
from trivet.types import Link, LinkKind, Memory, State


class LinksExist:
    """A cached answer to whether the store has links; most have none."""

    file = "links"
    query = "any"

    def __init__(self, database: Database, changes: Changes) -> None:
        self._database = database
        self._changes = changes
        self._known: tuple[int, bool] | None = None  # (change, result)

    def __call__(self) -> bool:
        last, known = self._changes.last(), self._known
        if known is None or self._changes.since(known[0]) != []:
            with self._database.errors():
                row = (
                    self._database.read()
                    .execute(self._database.sql(self.file)[self.query])
                    .fetchone()
                )
            known = self._known = (last, bool(row[0]))
        return known[1]


class Links(StorePart):
    file = "links"

    def __init__(self, database: Database, links_exist: LinksExist) -> None:
        super().__init__(database)
        self._links_exist = links_exist
        self._viewer = database.viewer

    def add(self, link: Link) -> bool:
        """Return whether the link is new."""
        with self._database.write() as connection:
            source, target = self._key(connection, link.source), self._key(connection, link.target)
            self._check_rights(connection, link.kind, source, target)
            if link.kind != "see-also" and self._reaches(connection, target, source, link.kind):
                raise Conflict(
                    f"{link.source} {link.kind} {link.target} would close a cycle: "
                    f"the target already leads to the source by {link.kind}. Nothing was written."
                )
            values = {
                "source": source,
                "kind": link.kind,
                "target": target,
                "created_at": stamp(link.created_at),
            }
            new = connection.execute(self._sql["insert"], values).rowcount > 0
            if new:
                self._after_change(connection, link.kind, source, target)
                record_write(
                    connection, self._viewer, "link", [link.source], f"{link.kind} {link.target}"
                )
        return new

    def remove(self, source: str, kind: LinkKind, target: str) -> None:
        with self._database.write() as connection:
            keys = {
                "source": self._key(connection, source),
                "target": self._key(connection, target),
            }
            self._check_rights(connection, kind, keys["source"], keys["target"])
            removed = connection.execute(self._sql["delete"], {**keys, "kind": kind}).rowcount
            if not removed:
                raise NotFound(
                    f"There is no link {source} {kind} {target}. `get` shows the links of a memory."
                )
            self._after_change(connection, kind, keys["source"], keys["target"])
            record_write(connection, self._viewer, "unlink", [source], f"{kind} {target}")

    def touching(self, ids: Sequence[str]) -> tuple[Link, ...]:
        return self._select("touching", ids=as_json(ids))

    def to_targets(self, ids: Sequence[str], kind: LinkKind) -> tuple[Link, ...]:
        return self._select("to_targets", ids=as_json(ids), kind=kind)

    def from_sources(self, ids: Sequence[str], kind: LinkKind) -> tuple[Link, ...]:
        return (
            self._select("from_sources", ids=as_json(ids), kind=kind) if self._links_exist() else ()
        )

    def everything(self) -> tuple[Link, ...]:
        return self._select("everything")

    def readable(self, damaged: Callable[[str], object]) -> Iterator[Link]:
        """Yield readable links; report the source of each damaged one."""
        for row in self._rows("everything", viewer=self._viewer):
            try:
                yield _link(row)
            except (ValueError, TypeError):
                damaged(f"a link of {row[1]}")

    def _select(self, name: str, **values: str) -> tuple[Link, ...]:
        rows = self._rows(name, **values, viewer=self._viewer)
        return tuple(_link(row) for row in rows)

    def _key(self, connection: Connection, id: str) -> int:
        values = {"id": id, "viewer": self._viewer}
        row = connection.execute(connection.sql("memories")["seen_by_id"], values).fetchone()
        if row is None:
            raise NotFound(f"There is no memory {id} in this store, so it cannot be linked.")
        return int(row["key"])

    def _check_rights(
        self, connection: Connection, kind: LinkKind, source: int, target: int
    ) -> None:
        """Require the target's owner for `supersedes`, which hides the target."""
        if self._viewer is None:
            return
        sql, viewer = connection.sql("visible"), {"viewer": self._viewer}
        if not connection.execute(sql["writable"], {"key": source, **viewer}).fetchone():
            raise Forbidden(
                "You may only read this memory, so you cannot link from it. Nothing was changed."
            )
        if (
            kind == "supersedes"
            and not connection.execute(sql["owned"], {"key": target, **viewer}).fetchone()
        ):
            raise Forbidden("Only its owner can supersede a memory. Nothing was changed.")

    def _reaches(self, connection: Connection, start: int, goal: int, kind: LinkKind) -> bool:
        parameters = {"start": start, "goal": goal, "kind": kind}
        return connection.execute(self._sql["reaches"], parameters).fetchone() is not None

    def _after_change(
        self, connection: WriteTransaction, kind: LinkKind, source: int, target: int
    ) -> None:
        if kind == "supersedes":
            update_superseded_state(connection, target)
        for key in (source, target):
            connection.note_change(key)


def _link(row: Row) -> Link:
    return Link(kind=row[0], source=row[1], target=row[2], created_at=moment(row[3]))


def superseded_by(connection: Connection, key: int) -> list[int]:
    """Return the keys of the memories that this one supersedes."""
    query = connection.sql("links")["superseded_by_key"]
    return [row["key"] for row in connection.execute(query, {"key": key}).fetchall()]


def update_superseded_states(connection: WriteTransaction, key: int) -> None:
    """Update a memory and those that it supersedes."""
    for each in (*superseded_by(connection, key), key):
        update_superseded_state(connection, each)


def update_superseded_state(connection: WriteTransaction, key: int) -> None:
    """Set `superseded` exactly while a living successor exists."""
    row = connection.execute(connection.sql("memories")["state"], {"key": key}).fetchone()
    if row is None or row["state"] not in ("active", "superseded"):
        return
    successor = connection.execute(
        connection.sql("links")["living_successor"], {"key": key}
    ).fetchone()
    state: State = "superseded" if successor else "active"
    if state != row["state"]:
        connection.execute(connection.sql("memories")["set_state"], {"key": key, "state": state})
        connection.note_change(key)


class LikelyUpdates(StorePart):
    file = "likely_updates"

    def waiting(self, model: Model | None, limit: int) -> tuple[PendingComparison, ...]:
        """Return memories to compare, latest first; with a model, those it embedded."""
        rows = self._rows("waiting", model=model.model if model else None, limit=limit)
        return tuple(PendingComparison(row["memory"], row["id"], row["revision"]) for row in rows)

    def pending(self) -> int:
        return int(self._row("pending")[0])

    def finish(
        self, memory: Memory, found: Iterable[tuple[Memory, Memory, float]], done: bool = True
    ) -> None:
        """Store (newer, older, probability) if neither has changed since.

        Without `done` the memory stays queued, because neighbors were missing.
        """
        with self._database.take() as connection:
            for newer, older, probability in found:
                values = {"newer": newer.id, "newer_revision": newer.revision}
                values |= {
                    "older": older.id,
                    "older_revision": older.revision,
                    "probability": probability,
                }
                connection.execute(self._sql["put"], values)
            if done:
                connection.execute(
                    self._sql["finish"], {"id": memory.id, "revision": memory.revision}
                )

    def skip(self, uncompared: PendingComparison) -> None:
        with self._database.take() as connection:
            connection.execute(
                self._sql["finish"], {"id": uncompared.id, "revision": uncompared.revision}
            )

    def updates_of(self, ids: Sequence[str]) -> tuple[LikelyUpdate, ...]:
        rows = self._rows("touching", ids=as_json(ids), viewer=self._database.viewer) if ids else []
        return tuple(LikelyUpdate(*row) for row in rows)

    def compare_all(self) -> None:
        with self._database.take() as connection:
            connection.execute(self._sql["clear_all"])
            connection.execute(self._sql["enqueue_all"])
