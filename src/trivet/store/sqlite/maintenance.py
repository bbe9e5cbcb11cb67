"""Backup of the file, and the checks behind `doctor` that only a file needs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from trivet.errors import StoreError
from trivet.store.relational.maintenance import REINDEX_LEXICAL, Maintenance
from trivet.store.sqlite.database import Database
from trivet.types import Finding


def remove(partial: Path) -> None:
    """A database that was not finished, with what SQLite keeps beside it."""
    for rest in ("", "-journal", "-wal", "-shm"):
        partial.with_name(partial.name + rest).unlink(missing_ok=True)


class SqliteMaintenance(Maintenance):
    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._file = database

    def findings(self) -> tuple[Finding, ...]:
        with self._file.errors():
            return (self._in_place(), self._integrity(), self._lexical_structure(), *super().findings())

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

    def _integrity(self) -> Finding:
        answer = self._file.read().execute("PRAGMA integrity_check").fetchone()[0]
        remedy = None if answer == "ok" else "Restore a backup with `trivet backup --restore FILE`."
        return Finding(check="database file", ok=answer == "ok", detail=answer, remedy=remedy)

    def _lexical_structure(self) -> Finding:
        try:
            with self._file.write() as connection:
                connection.execute(self._file.sql("lexical")["integrity"])
        except StoreError as error:
            return Finding(check="lexical index", ok=False, detail=str(error), remedy=REINDEX_LEXICAL)
        return Finding(check="lexical index", ok=True, detail="sound")
