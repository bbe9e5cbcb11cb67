"""Reads every row of a file, for `doctor`: SQLite's own check looks at pages and structure, not at what they say."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from trivet.store.relational.read_rows import COLUMNS, Damaged, RowCheck

# Views of the lexical index are no tables; what it keeps is in tables of its own.
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"


def read_all(path: Path) -> RowCheck:
    """On a connection of its own, which takes a text that is damaged as well as any other."""
    check = RowCheck()
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)) as connection:
        connection.text_factory = _text
        connection.execute("BEGIN")
        for (table,) in connection.execute(_TABLES).fetchall():
            columns = ", ".join(COLUMNS.get(table, ("*",)))
            try:
                check.rows_of(table, connection.execute(f'SELECT {columns} FROM "{table}"'))
            except sqlite3.Error as error:
                check.problems.append(f"{table}: {error}")
        _check_vectors(connection, check)
        check.problems += [
            f"{table}, row {row}: what it belongs to in {parent} is gone"
            for table, row, parent, _ in connection.execute("PRAGMA foreign_key_check")
        ]
    return check


def _check_vectors(connection: sqlite3.Connection, check: RowCheck) -> None:
    """float16 takes two bytes a dimension."""
    wrong = (
        "SELECT count(*) FROM passage AS p JOIN embedding_model AS m USING (model) "
        "WHERE length(p.vector) != 2 * m.dimension"
    )
    (count,) = connection.execute(wrong).fetchone()
    if count:
        check.problems.append(f"passage: {count} vectors are not as long as their model's")


def _text(value: bytes) -> str | Damaged:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Damaged()
