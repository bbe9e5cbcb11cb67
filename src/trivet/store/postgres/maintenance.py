"""Backup into a file of the embedded store, and the checks behind `doctor` that only a server needs."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

from trivet.errors import StoreError
from trivet.store.postgres.backup import TABLES, copy_into
from trivet.store.postgres.connection import Transaction
from trivet.store.postgres.database import Database
from trivet.store.relational.maintenance import Maintenance, rows_read
from trivet.store.relational.read_rows import COLUMNS, RowCheck
from trivet.store.relational.vector_index import VectorIndex
from trivet.store.sqlite.maintenance import remove
from trivet.types import Finding

# Rows at a time, so that a large tenant does not fill the memory.
READ_AT_ONCE = 1_000
# Tables that a backup makes anew from the others.
INDEXES = ("lexical", "posting", "passage")


class PostgresMaintenance(Maintenance):
    def __init__(self, database: Database, vectors: VectorIndex) -> None:
        super().__init__(database, vectors)
        self._postgres = database

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

    def findings(self, whole: bool = True) -> tuple[Finding, ...]:
        read = [self._rows_read()] if whole else []
        if not all(finding.ok for finding in read):
            return tuple(read)
        return (*read, *super().findings(whole), self._vector_index(), self._standbys(), self._roles())

    def _rows_read(self) -> Finding:
        """In one snapshot, some rows at a time. Tables that hold no JSON are read by the server itself."""
        check = RowCheck()
        try:
            with self._postgres.snapshot() as snapshot:
                for table, columns in COLUMNS.items():
                    check.rows_of(table, _paged(snapshot, table, columns))
                for table in (*(one for one in TABLES if one not in COLUMNS), *INDEXES):
                    [row] = snapshot.execute(f"SELECT count(t::text) FROM {table} AS t").fetchall()
                    check.rows += int(row[0])
        except StoreError as error:
            check.problems.append(str(error))
        return rows_read(check)

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


def _paged(snapshot: Transaction, table: str, columns: Sequence[str]) -> Iterator[Sequence[object]]:
    """By the server's own number of a row, which stays the same within a snapshot."""
    sql = (
        f"SELECT ctid::text, {', '.join(columns)} FROM {table} WHERE ctid > %(after)s::tid ORDER BY ctid LIMIT %(most)s"
    )
    after = "(0,0)"
    while rows := snapshot.execute(sql, {"after": after, "most": READ_AT_ONCE}).fetchall():
        yield from (row[1:] for row in rows)
        after = rows[-1][0]
