"""Backup of the file, and the checks behind `doctor` that only a file needs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from trivet.errors import StoreError
from trivet.store.relational.maintenance import REINDEX_LEXICAL, RESTORE, ROWS_READ, Maintenance, rows_read
from trivet.store.relational.vector_index import VectorIndex
from trivet.store.sqlite.database import Database
from trivet.store.sqlite.read_all import read_all
from trivet.types import Finding


def remove(partial: Path) -> None:
    """A database that was not finished, with what SQLite keeps beside it."""
    for rest in ("", "-journal", "-wal", "-shm"):
        partial.with_name(partial.name + rest).unlink(missing_ok=True)


class SqliteMaintenance(Maintenance):
    def __init__(self, database: Database, vectors: VectorIndex) -> None:
        super().__init__(database, vectors)
        self._file = database

    def findings(self, whole: bool = True) -> tuple[Finding, ...]:
        """Of a damaged file no more is asked than what is damaged."""
        sound = (self._in_place(), self._integrity(whole), *([self._rows_read()] if whole else []))
        if not all(finding.ok for finding in sound[1:]):
            return sound
        return (*sound, self._lexical_structure(), *super().findings(whole))

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
