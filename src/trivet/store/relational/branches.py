"""Edits that clashed with a memory and wait for somebody to resolve them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from trivet.memory_fields import as_json
from trivet.store.records import Beside
from trivet.store.relational.beside import read_beside
from trivet.store.relational.bundles import rev_of
from trivet.store.relational.database import Database, Part
from trivet.store.relational.links import AnyLinks
from trivet.store.sync_records import Rev
from trivet.types import Memory


class AnyBranches(AnyLinks):
    """Whether a store has branches at all. Few have, and then no answer need ask for them."""

    file = "sync"
    query = "any_branch"


class Branches(Part):
    file = "sync"

    def __init__(self, database: Database, any_branches: AnyBranches) -> None:
        super().__init__(database)
        self._any_branches = any_branches

    def waiting(self, ids: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
        """The names of the branches of each memory that has some."""
        if not self._any_branches():
            return {}
        found: dict[str, tuple[str, ...]] = {}
        for row in self._rows("waiting_branches", ids=as_json(ids)):
            found[row[0]] = (*found.get(row[0], ()), row[1])
        return found

    def clashing(self, id: str | None, limit: int) -> list[tuple[str, Rev]]:
        """Those of the memories that may be read, or of this one alone, each with the memory's id."""
        if not self._any_branches():
            return []
        rows = self._rows("clashing", id=id or "", limit=limit, viewer=self._database.viewer)
        return [(row["id"], rev_of(row)) for row in rows]

    def beside(self, memory: Memory) -> tuple[Beside, ...]:
        """What is said of a memory beside its history."""
        with self._database.errors():
            return read_beside(self._database.read(), memory)
