"""Backup into a file of the embedded store, and the checks behind `doctor` that only a server needs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from trivet.errors import StoreError
from trivet.store.postgres.backup import copy_into
from trivet.store.postgres.database import Database
from trivet.store.relational.maintenance import Maintenance
from trivet.store.relational.vector_index import VectorIndex
from trivet.store.sqlite.maintenance import remove
from trivet.types import Finding


class PostgresMaintenance(Maintenance):
    def __init__(self, database: Database, vectors: VectorIndex) -> None:
        super().__init__(database)
        self._postgres = database
        self._vectors = vectors

    def backup(self, target: Path) -> None:
        """One tenant as of one moment, as a file that Trivet opens anywhere. It appears only when it is whole."""
        if target.exists():
            raise StoreError(f"{target} exists already. Nothing was written; name another file.")
        if not target.parent.is_dir():
            raise StoreError(f"The backup {target} cannot be written: there is no such folder. Nothing is left of it.")
        partial = target.with_name(target.name + ".partial")
        try:
            remove(partial)
            with self._postgres.snapshot() as snapshot:
                copy_into(partial, snapshot)
            partial.rename(target)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"The backup {target} cannot be written: {error}. Nothing is left of it.") from None
        finally:
            remove(partial)

    def findings(self) -> tuple[Finding, ...]:
        return (*super().findings(), self._vector_index(), self._standbys())

    def _vector_index(self) -> Finding:
        trouble = self._vectors.trouble
        remedy = "Let the role that opens the store own its tables." if trouble else None
        return Finding(check="index of many vectors", ok=not trouble, detail=trouble or "none missing", remedy=remedy)

    def _standbys(self) -> Finding:
        states = self._postgres.server.replicas.states()
        described = [
            f"{one.name}: {one.trouble or 'up'}, {one.chosen} times chosen, {one.behind} behind, {one.failed} failed"
            for one in states
        ]
        ok = all(one.up for one in states)
        remedy = None if ok else "See that it runs and follows the primary; until then the primary answers."
        return Finding(check="standbys", ok=ok, detail="; ".join(described) or "none configured", remedy=remedy)
