"""Backup of the file, and the checks behind `doctor` that only a file needs."""

from __future__ import annotations

import logging
import sqlite3
from pathlib import Path

from trivet.errors import EmbedderError, StoreError
from trivet.store.relational.maintenance import REINDEX_LEXICAL, RESTORE, ROWS_READ, Maintenance, rows_read
from trivet.store.relational.mapped_index import MOST_CHANGES
from trivet.store.relational.vector_index import VectorIndex
from trivet.store.sqlite.database import Database
from trivet.store.sqlite.read_all import read_all
from trivet.types import Finding

logger = logging.getLogger("trivet.store.sqlite")

# Smaller stores get no index file: they are loaded as fast from the database (docs/decisions/0037).
LEAST_MEMORIES = 2_000
# With so many changes since it was made, or after a day with any, an index file is made anew: each new process takes
# them in, and what was forgotten since is still in the file.
CHANGES_BEHIND = 500
LONGEST_SECONDS = 86_400.0


def remove(partial: Path) -> None:
    """A database that was not finished, with what SQLite keeps beside it."""
    for rest in ("", "-journal", "-wal", "-shm"):
        partial.with_name(partial.name + rest).unlink(missing_ok=True)


class SqliteMaintenance(Maintenance):
    def __init__(self, database: Database, vectors: VectorIndex) -> None:
        super().__init__(database)
        self._file = database
        self._vectors = vectors

    def findings(self, whole: bool = True) -> tuple[Finding, ...]:
        """Of a damaged file no more is asked than what is damaged."""
        sound = (self._in_place(), self._integrity(whole), *([self._rows_read()] if whole else []))
        if not all(finding.ok for finding in sound[1:]):
            return sound
        return (*sound, self._lexical_structure(), *super().findings(whole), self._index_file(whole))

    def renew_index(self, only_if_missing: bool = False) -> bool:
        try:
            if not self._index_is_due(only_if_missing):
                return False
            from trivet.store.relational.build_index import write_index

            return self._file.index_files.renew(
                lambda writer, mark: write_index(writer, self._file, self._vectors, mark)
            )
        # The disk is full or read-only, or a row is not as we write them: recalls go on without.
        except (OSError, EmbedderError, ValueError) as error:
            logger.info("The index file of %s cannot be written: %s", self._file.path, error)
            return False

    def _index_is_due(self, only_if_missing: bool) -> bool:
        row = self._row("last_numbers")
        if row["memories"] < LEAST_MEMORIES:
            return False
        index = self._file.mapped_index()
        behind = MOST_CHANGES + 1 if index is None else row["changes"] - index.sequence
        if only_if_missing:
            return bool(behind > MOST_CHANGES)
        return bool(behind > CHANGES_BEHIND or (index is not None and behind and index.age() > LONGEST_SECONDS))

    def _index_file(self, whole: bool) -> Finding:
        """The checksums of every part are looked at with `whole`; a damaged file is thrown away."""
        check, index = "index file", self._file.index_files.opened()
        if index is None:
            return Finding(check=check, ok=True, detail="none: indexes are loaded from the database")
        damaged = index.damaged() if whole else []
        if damaged:
            self._file.index_files.throw_away()
            detail = f"damaged ({', '.join(damaged)}) and thrown away"
            remedy = "It is made anew by itself. Its disk may be failing: check it."
            return Finding(check=check, ok=False, detail=detail, remedy=remedy)
        return Finding(check=check, ok=True, detail=f"of {index.facts.memories:,} memories")

    def _place(self) -> str:
        return str(self._file.path.absolute())

    def backup(self, target: Path) -> None:
        """SQLite's online backup: consistent while others read and write. The target appears only when it is whole."""
        if target.exists():
            raise StoreError(f"{target} exists already. Nothing was written; name another file.")
        partial = target.with_name(target.name + ".partial")
        try:
            remove(partial)
            partial.touch(mode=0o600)
            self._copy_to(partial)
            partial.rename(target)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(f"The backup {target} cannot be written: {error}. Nothing is left of it.") from None
        finally:
            remove(partial)

    def _copy_to(self, target: Path) -> None:
        copy = sqlite3.connect(target)
        try:
            self._file.read().backup(copy)
        finally:
            copy.close()

    def _in_place(self) -> Finding:
        try:
            self._file.check_in_place()
        except StoreError as error:
            return Finding(check="file in its place", ok=False, detail=str(error), remedy="Open the store again.")
        return Finding(check="file in its place", ok=True, detail="yes")

    def _integrity(self, whole: bool) -> Finding:
        """SQLite's check of every page; the quick one leaves out whether indexes say the same as their tables."""
        check = "integrity_check" if whole else "quick_check"
        try:
            answer = str(self._file.read().execute(f"PRAGMA {check}").fetchone()[0])
        except sqlite3.Error as error:
            answer = str(error)
        remedy = None if answer == "ok" else RESTORE
        return Finding(check="database file", ok=answer == "ok", detail=answer, remedy=remedy)

    def _rows_read(self) -> Finding:
        try:
            return rows_read(read_all(self._file.path))
        except sqlite3.Error as error:
            return Finding(check=ROWS_READ, ok=False, detail=str(error), remedy=RESTORE)

    def _lexical_structure(self) -> Finding:
        try:
            with self._file.write() as connection:
                connection.execute(self._file.sql("lexical")["integrity"])
        except StoreError as error:
            return Finding(check="lexical index", ok=False, detail=str(error), remedy=REINDEX_LEXICAL)
        return Finding(check="lexical index", ok=True, detail="sound")
