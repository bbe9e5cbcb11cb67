"""Stores as earlier versions of Trivet left them, written by hand with those versions' schemas."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path

import msgspec

from support.stores import EARLY, document, memory
from trivet.analyse import ANALYSER_VERSION
from trivet.settings.locations import APPLICATION_ID
from trivet.store.sql_files import step
from trivet.store.sqlite.database import FOLDER
from trivet.types import Memory

MEMORIES = (
    memory("we met Clara at Acme in spring", tags=("spring",)),
    memory("the office of Acme is in Rostock", title="Acme"),
    memory("the password of Clara is Xyzzy", sensitive=True),
    memory("forgotten words of Emil", state="deleted"),
    memory("what was said of Acme before", state="superseded"),
)


def make_version_one(path: Path, more: int = 0) -> tuple[Memory, ...]:
    """Write a store with rows in every table, and `more` plain memories."""
    memories = (*MEMORIES, *(memory(f"number {number} of Acme") for number in range(more)))
    path.touch(mode=0o600)
    connection = sqlite3.connect(path)
    connection.executescript(step(FOLDER, 1).sql)
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.execute("PRAGMA user_version = 1")
    for one in memories:
        _write(connection, one)
    connection.execute("INSERT INTO link VALUES (2, 'supersedes', 5, ?)", (EARLY,))
    connection.execute("INSERT INTO embedding_model VALUES (1, 'tiny', 'a', 2, 1)")
    connection.execute("INSERT INTO passage VALUES (1, 1, 0, 0, 10, x'003c0000')")
    waiting = "SELECT key, 1, 1 FROM memory WHERE key > 1 AND state != 'deleted' AND NOT sensitive"
    connection.execute(f"INSERT INTO job (memory, model, revision) {waiting}")
    connection.execute("INSERT INTO meta VALUES ('analyser', ?)", (str(ANALYSER_VERSION),))
    connection.commit()
    connection.close()
    return memories


# Rows that a user may have in the tables added by a version.
ROWS: Mapping[int, tuple[str, ...]] = {
    2: (
        "INSERT INTO concept VALUES (1, 'acme')",
        "INSERT INTO mention VALUES (1, 1, 'rules', 2, 'name', 'Acme', 'acme')",
    ),
    4: (
        "INSERT INTO account VALUES ('bo', 'reader', '2024-01-01T00:00:00Z')",
        "INSERT INTO share VALUES (1, 'bo', 'read', '2024-01-01T00:00:00Z')",
        "INSERT INTO tag_share VALUES ('local', 'spring', 'bo', 'read', '2024-01-01T00:00:00Z')",
    ),
    7: (
        "INSERT INTO usage VALUES (1, 3, '2024-01-01T00:00:00Z')",
        "INSERT INTO feedback VALUES (1, 'local', '', 'useful', '2024-01-01T00:00:00Z')",
    ),
}


def make_version(path: Path, version: int, more: int = 0) -> tuple[Memory, ...]:
    """Upgrade the same store to a later version step by step, with rows in what each step added."""
    memories = make_version_one(path, more)
    connection = sqlite3.connect(path)
    for number in range(2, version + 1):
        connection.executescript(step(FOLDER, number).sql)
        for row in ROWS.get(number, ()):
            connection.execute(row)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    connection.close()
    return memories


def _write(connection: sqlite3.Connection, one: Memory) -> None:
    terms = document(one)
    values = (
        one.id,
        one.content,
        one.title,
        one.category,
        json.dumps(one.tags),
        one.importance,
        one.confidence,
    )
    rest = (
        "[]",
        one.scope,
        one.created_at,
        one.updated_at,
        one.state,
        one.sensitive,
        one.revision,
        terms.length,
    )
    key = connection.execute(
        "INSERT INTO memory (id, content, title, category, tags, importance, confidence, expanded_keywords, scope, "
        "created_at, updated_at, state, sensitive, revision, length) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*values, *rest),
    ).lastrowid
    connection.executemany("INSERT INTO memory_tag VALUES (?, ?)", [(key, tag) for tag in one.tags])
    snapshot = msgspec.json.encode(one).decode()
    connection.execute(
        "INSERT INTO revision VALUES (?, 1, ?, 'remember', ?)", (key, one.created_at, snapshot)
    )
    connection.execute("INSERT INTO change (memory) VALUES (?)", (key,))
    if one.state != "deleted":
        fields = (terms.content, terms.title, terms.keywords, terms.tags, terms.category)
        columns = "rowid, content, title, keywords, tags, category"
        row = (key, *(" ".join(field) for field in fields))
        connection.execute(f"INSERT INTO lexical ({columns}) VALUES (?, ?, ?, ?, ?, ?)", row)
        connection.executemany(
            "INSERT INTO fingerprint VALUES (?, ?)", [(hash, key) for hash in terms.fingerprint]
        )


def contents(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Return every row of every table of the first version, and the version number."""
    tables = "memory memory_tag revision link lexical fingerprint embedding_model passage job change meta".split()
    connection = sqlite3.connect(path)
    try:
        found = {
            table: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall()
            for table in tables
        }
        names = connection.execute(
            "SELECT name FROM sqlite_master WHERE name NOT LIKE 'sqlite_%' ORDER BY 1"
        ).fetchall()
        return {
            **found,
            "version": connection.execute("PRAGMA user_version").fetchall(),
            "names": names,
        }
    finally:
        connection.close()
