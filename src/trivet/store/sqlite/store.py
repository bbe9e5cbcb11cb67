"""The embedded store, its backup, and the checks that only a file needs."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from trivet.errors import StoreError
from trivet.store.relational.changes import Changes
from trivet.store.relational.index.vector_index import VectorIndex
from trivet.store.relational.maintenance import (
    COLUMNS,
    REINDEX_LEXICAL,
    RESTORE,
    ROWS_READ,
    Maintenance,
    RowCheck,
    UndecodableText,
    rows_finding,
)
from trivet.store.relational.store import RelationalStore
from trivet.store.sqlite.database import Database
from trivet.store.sqlite.indexes import SqliteVectorIndex
from trivet.types import Finding

# A virtual table's contents are in other tables.
_TABLES = (
    "SELECT name FROM sqlite_master "
    "WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
)


def check_all_rows(path: Path) -> RowCheck:
    """Read every row, even damaged text: SQLite's own check covers structure, not values."""
    check = RowCheck()
    with closing(
        sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
    ) as connection:
        connection.text_factory = _text
        connection.execute("BEGIN")
        for (table,) in connection.execute(_TABLES).fetchall():
            columns = ", ".join(COLUMNS.get(table, ("*",)))
            try:
                check.check_rows(table, connection.execute(f'SELECT {columns} FROM "{table}"'))
            except sqlite3.Error as error:
                check.problems.append(f"{table}: {error}")
        _check_vectors(connection, check)
        check.problems += [
            f"{table}, row {row}: the row in {parent} that it refers to is missing"
            for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check")
        ]
    return check


def _check_vectors(connection: sqlite3.Connection, check: RowCheck) -> None:
    wrong = (
        "SELECT count(*) FROM passage AS p JOIN embedding_model AS m USING (model) "
        "WHERE length(p.vector) != 2 * m.dimension"  # float16 takes two bytes
    )
    (count,) = connection.execute(wrong).fetchone()
    if count:
        check.problems.append(f"passage: {count} vectors do not have their model's dimensions")


def _text(value: bytes) -> str | UndecodableText:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return UndecodableText()


def remove_partial(partial: Path) -> None:
    for rest in ("", "-journal", "-wal", "-shm"):
        partial.with_name(partial.name + rest).unlink(missing_ok=True)


class SqliteMaintenance(Maintenance):
    def __init__(self, database: Database, vectors: VectorIndex) -> None:
        super().__init__(database, vectors)
        self._file = database

    def findings(self, whole: bool = True) -> tuple[Finding, ...]:
        sound = (self._in_place(), self._integrity(whole), *([self._rows_read()] if whole else []))
        if not all(finding.ok for finding in sound[1:]):
            return sound
        return (*sound, self._lexical_structure(), *super().findings(whole))

    def _place(self) -> str:
        return str(self._file.path.absolute())

    def backup(self, target: Path) -> None:
        if target.exists():
            raise StoreError(f"{target} already exists. Nothing was written; name another file.")
        partial = target.with_name(target.name + ".partial")
        try:
            remove_partial(partial)
            partial.touch(mode=0o600)
            self._copy_to(partial)
            partial.rename(target)
        except (OSError, sqlite3.Error) as error:
            raise StoreError(
                f"The backup {target} cannot be written: {error}. No partial file is left."
            ) from None
        finally:
            remove_partial(partial)

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
            return Finding(
                check="file in its place",
                ok=False,
                detail=str(error),
                remedy="Open the store again.",
            )
        return Finding(check="file in its place", ok=True, detail="yes")

    def _integrity(self, whole: bool) -> Finding:
        check = "integrity_check" if whole else "quick_check"
        try:
            answer = str(self._file.read().execute(f"PRAGMA {check}").fetchone()[0])
        except sqlite3.Error as error:
            answer = str(error)
        remedy = None if answer == "ok" else RESTORE
        return Finding(check="database file", ok=answer == "ok", detail=answer, remedy=remedy)

    def _rows_read(self) -> Finding:
        try:
            return rows_finding(check_all_rows(self._file.path))
        except sqlite3.Error as error:
            return Finding(check=ROWS_READ, ok=False, detail=str(error), remedy=RESTORE)

    def _lexical_structure(self) -> Finding:
        try:
            with self._file.write() as connection:
                connection.execute(self._file.sql("lexical")["integrity"])
        except StoreError as error:
            return Finding(
                check="lexical index", ok=False, detail=str(error), remedy=REINDEX_LEXICAL
            )
        return Finding(check="lexical index", ok=True, detail="sound")


class SqliteStore(RelationalStore):
    _database: Database

    def __init__(self, path: Path, busy_time_limit_ms: int = 10_000) -> None:
        super().__init__(Database(path, busy_time_limit_ms))

    def _make_vector_index(self, changes: Changes) -> SqliteVectorIndex:
        return SqliteVectorIndex(self._database, self._visibility, changes, self._ids)

    def _make_maintenance(self) -> SqliteMaintenance:
        return SqliteMaintenance(self._database, self.vectors)
