"""Backup into a file of the embedded store, and the checks behind `doctor` that only a server needs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from trivet.errors import StoreError
from trivet.store.postgres.backup import copy_into
from trivet.store.postgres.database import Database
from trivet.store.relational.maintenance import Maintenance
from trivet.store.relational.vector_index import VectorIndex
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
            partial.unlink(missing_ok=True)
            with self._postgres.snapshot() as snapshot:
                copy_into(partial, snapshot)
            partial.rename(target)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"The backup {target} cannot be written: {error}. Nothing is left of it.") from None
        finally:
            for rest in ("", "-wal", "-shm"):
                partial.with_name(partial.name + rest).unlink(missing_ok=True)

    def findings(self) -> tuple[Finding, ...]:
        return (*super().findings(), self._vector_index(), self._standbys(), self._roles())

    def _vector_index(self) -> Finding:
        trouble = self._vectors.trouble
        remedy = "Run `trivet migrate postgresql://OWNER@HOST/DATABASE`, which builds it." if trouble else None
        return Finding(check="index of many vectors", ok=not trouble, detail=trouble or "none missing", remedy=remedy)

    def _roles(self) -> Finding:
        """Never a problem: one role is a sound way to begin, and weaker than two."""
        server = self._postgres.server
        if server.acts_as_owner:
            detail = f"weaker than two: this one can act as {server.owner}, who owns the tables and could unbind them"
        else:
            detail = f"two: the tables belong to {server.owner}, and this one cannot change them"
        return Finding(check="roles of the database", ok=True, detail=detail)

    def _standbys(self) -> Finding:
        states = self._postgres.server.replicas.states()
        described = [
            f"{one.name}: {one.trouble or 'up'}, {one.chosen} times chosen, {one.behind} behind, {one.failed} failed"
            for one in states
        ]
        ok = all(one.up for one in states)
        remedy = None if ok else "See that it runs and follows the primary; until then the primary answers."
        return Finding(check="standbys", ok=ok, detail="; ".join(described) or "none configured", remedy=remedy)
