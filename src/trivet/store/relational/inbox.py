"""Proposals that wait for review, each its owner's alone, and the day's budget of the language model behind them."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import msgspec

from trivet.clock import now
from trivet.errors import Conflict, NotFound
from trivet.store.relational.database import Database, Row
from trivet.store.relational.rows import as_json, strings
from trivet.types import LOCAL, Proposal, ProposalPage, ProposalState


class RelationalInbox:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._sql = database.sql("inbox")

    def add(self, proposal: Proposal, said: Sequence[str]) -> None:
        with self._database.write() as connection:
            row = {**msgspec.structs.asdict(proposal), "tags": as_json(proposal.tags), "said": digest(said)}
            connection.execute(self._sql["insert"], {name: row[name] for name in _INSERTED})

    def get(self, id: str) -> Proposal:
        values = {"id": id, "viewer": self._database.viewer}
        with self._database.errors():
            row = self._database.read().execute(self._sql["by_id"], values).fetchone()
        if row is None:
            raise NotFound(f"There is no proposal {id} in this inbox. `trivet inbox` lists those that wait.")
        return _proposal(row)

    def page(self, state: ProposalState, limit: int, offset: int) -> ProposalPage:
        values = {"state": state, "viewer": self._database.viewer}
        with self._database.errors():
            connection = self._database.read()
            rows = connection.execute(self._sql["page"], {**values, "limit": limit, "offset": offset}).fetchall()
            total = int(connection.execute(self._sql["total"], values).fetchone()[0])
        return ProposalPage(proposals=tuple(_proposal(row) for row in rows), total=total, offset=offset)

    def decide(self, id: str, state: ProposalState, stored: str | None = None) -> Proposal:
        with self._database.write() as connection:
            values = {"id": self.get(id).id, "state": state, "decided_at": now(), "stored": stored}
            connection.execute(self._sql["decide"], values)
            return self.get(id)

    def rewrite(self, proposal: Proposal, said: Sequence[str]) -> Proposal:
        """A waiting proposal with other words, another action or another verdict of the curation."""
        with self._database.write() as connection:
            row = {**msgspec.structs.asdict(proposal), "tags": as_json(proposal.tags), "said": digest(said)}
            if not connection.execute(self._sql["rewrite"], {name: row[name] for name in _REWRITTEN}).rowcount:
                raise Conflict(f"Proposal {proposal.id} does not wait any longer. Nothing was changed.")
            return self.get(proposal.id)

    def same(self, said: Sequence[str]) -> Proposal | None:
        """The latest of the viewer's own that says the same, whatever became of it."""
        values = {"owner": self._database.viewer or LOCAL, "said": digest(said)}
        with self._database.errors():
            row = self._database.read().execute(self._sql["same"], values).fetchone()
        return None if row is None else _proposal(row)

    def latest(self, limit: int) -> tuple[Proposal, ...]:
        return self._some("latest", {"owner": self._database.viewer or LOCAL, "limit": limit})

    def uncurated(self, limit: int) -> tuple[Proposal, ...]:
        return self._some("uncurated", {"viewer": self._database.viewer, "limit": limit})

    def spend(self, tokens: int, most: int) -> bool:
        """Takes tokens out of today's budget, shared by all processes. False, and nothing taken, if they do not fit."""
        if tokens > most:
            return False
        with self._database.write() as connection:
            parameters = {"name": _today(), "tokens": tokens, "most": most}
            taken = connection.execute(self._sql["spend"], parameters).rowcount > 0
            connection.execute(self._sql["forget_earlier_days"], {"name": _today()})
        return taken

    def spent(self) -> int:
        with self._database.errors():
            row = self._database.read().execute(self._sql["spent"], {"name": _today()}).fetchone()
        return int(row[0]) if row else 0

    def _some(self, name: str, values: dict[str, object]) -> tuple[Proposal, ...]:
        with self._database.errors():
            return tuple(_proposal(row) for row in self._database.read().execute(self._sql[name], values).fetchall())


_REWRITTEN = ("id", "content", "reason", "action", "memory", "category", "tags", "curated_at", "said")
_INSERTED = (
    "id", "owner", "content", "kind", "reason", "action", "memory", "category", "tags", "scope", "source", "state",
    "created_at", "said",
)  # fmt: skip


def digest(said: Sequence[str]) -> str:
    return sha256("\n".join(said).encode()).hexdigest()


def _proposal(row: Row) -> Proposal:
    fields = {name: row[name] for name in Proposal.__struct_fields__}
    return Proposal(**{**fields, "tags": strings(row["tags"])})


def _today() -> str:
    return f"capture tokens {now()[:10]}"
