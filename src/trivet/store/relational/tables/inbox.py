"""Proposals that wait for review, and the language model's daily budget."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from trivet.common.clock import moment_or_none, now, stamp_or_none
from trivet.errors import Conflict, NotFound
from trivet.memory_fields import as_json, texts
from trivet.store.relational.database import Database, Row, StorePart
from trivet.store.relational.ids import id_prefix_range
from trivet.store.relational.index.extraction_queue import DailyBudget
from trivet.types import LOCAL, Proposal, ProposalPage, ProposalState


class Inbox(StorePart):
    file = "inbox"

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._budget = DailyBudget(database, "capture")

    def add(self, proposal: Proposal, said: Sequence[str]) -> None:
        with self._database.write() as connection:
            row = {**_columns(proposal), "said": digest(said)}
            connection.execute(self._sql["insert"], {name: row[name] for name in _INSERTED})

    def get(self, id: str) -> Proposal:
        row = self._row("by_id", id=id, viewer=self._database.viewer)
        if row is None:
            raise NotFound(
                f"There is no proposal {id} in this inbox. `trivet inbox` lists the waiting ones."
            )
        return _proposal(row)

    def ids_with_prefix(self, start: str, limit: int) -> list[str]:
        rows = self._rows(
            "starting_with", **id_prefix_range(start), limit=limit, viewer=self._database.viewer
        )
        return [row[0] for row in rows]

    def page(self, state: ProposalState, limit: int, offset: int) -> ProposalPage:
        values = {"state": state, "viewer": self._database.viewer}
        rows = self._rows("page", **values, limit=limit, offset=offset)
        total = int(self._row("total", **values)[0])
        return ProposalPage(
            proposals=tuple(_proposal(row) for row in rows), total=total, offset=offset
        )

    def decide(self, id: str, state: ProposalState, stored: str | None = None) -> Proposal:
        with self._database.write() as connection:
            values = {"id": self.get(id).id, "state": state, "decided_at": now(), "stored": stored}
            connection.execute(self._sql["decide"], values)
            return self.get(id)

    def reopen(self, id: str) -> Proposal:
        """Let it wait again; accepting it again restores the memory it became."""
        with self._database.write() as connection:
            connection.execute(self._sql["reopen"], {"id": self.get(id).id})
            return self.get(id)

    def rewrite(self, proposal: Proposal, said: Sequence[str]) -> Proposal:
        with self._database.write() as connection:
            row = {**_columns(proposal), "said": digest(said)}
            if not connection.execute(
                self._sql["rewrite"], {name: row[name] for name in _REWRITTEN}
            ).rowcount:
                raise Conflict(f"Proposal {proposal.id} is no longer waiting. Nothing was changed.")
            return self.get(proposal.id)

    def same(self, said: Sequence[str]) -> Proposal | None:
        """Return the viewer's latest proposal with the same words, in any state."""
        row = self._row("same", owner=self._database.viewer or LOCAL, said=digest(said))
        return None if row is None else _proposal(row)

    def latest(self, limit: int) -> tuple[Proposal, ...]:
        rows = self._rows("latest", owner=self._database.viewer or LOCAL, limit=limit)
        return tuple(_proposal(row) for row in rows)

    def uncurated(self, limit: int) -> tuple[Proposal, ...]:
        return tuple(
            _proposal(row)
            for row in self._rows("uncurated", viewer=self._database.viewer, limit=limit)
        )

    def spend(self, tokens: int, most: int) -> bool:
        return self._budget.spend(tokens, most)

    def spent(self) -> int:
        return self._budget.spent()


_TIMES = ("created_at", "decided_at", "curated_at")
_REWRITTEN = (
    "id",
    "content",
    "reason",
    "action",
    "memory",
    "category",
    "tags",
    "curated_at",
    "said",
)
_INSERTED = (
    "id", "owner", "content", "kind", "reason", "action", "memory", "category", "tags", "scope",
    "source", "state", "created_at", "said",
)  # fmt: skip


def digest(said: Sequence[str]) -> str:
    return sha256("\n".join(said).encode()).hexdigest()


def _proposal(row: Row) -> Proposal:
    fields = {name: row[name] for name in Proposal.__struct_fields__}
    times = {name: moment_or_none(row[name]) for name in _TIMES}
    return Proposal(**{**fields, **times, "tags": texts(row["tags"])})


def _columns(proposal: Proposal) -> dict[str, object]:
    times = {name: stamp_or_none(getattr(proposal, name)) for name in _TIMES}
    return {**msgspec.structs.asdict(proposal), **times, "tags": as_json(proposal.tags)}
