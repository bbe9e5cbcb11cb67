"""A store of an earlier version is brought up to this one, wholly or not at all; a later one is left alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from support.opened import Opened
from support.version_one import contents, make_version_one
from trivet import StoreError
from trivet.store.migrations import step
from trivet.store.sqlite import SqliteStore
from trivet.store.sqlite.database import FOLDER, SCHEMA_VERSION
from trivet.types import LOCAL


def test_a_store_of_version_one_keeps_everything(path: Path) -> None:
    make_version_one(path)
    before = contents(path)
    SqliteStore(path).close()
    after = contents(path)
    assert after.pop("version") == [(SCHEMA_VERSION,)]
    assert set(before.pop("names")) < set(after.pop("names"))
    del before["version"]
    after["memory"] = [(*row[:-1],) for row in after["memory"] if row[-1] == LOCAL]  # the owner is new
    assert after == before


@pytest.mark.parametrize("version", range(2, SCHEMA_VERSION))
def test_a_store_of_each_later_version_keeps_everything(path: Path, version: int, open_trivet: Opened) -> None:
    memories = make_version_one(path, more=5)
    connection = sqlite3.connect(path)
    for number in range(2, version + 1):
        connection.executescript(step(FOLDER, number).sql)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.commit()
    columns = {table: _columns(connection, table) for table in _tables(connection)}
    before = {table: _rows(connection, table, names) for table, names in columns.items()}
    connection.close()
    SqliteStore(path).close()
    connection = sqlite3.connect(path)
    assert {table: _rows(connection, table, names) for table, names in columns.items()} == before
    connection.close()
    trivet = open_trivet()
    assert trivet.stats().schema == SCHEMA_VERSION
    assert trivet.redact().memories == 0
    assert trivet.get(memories[0].id) == memories[0]
    assert [finding.check for finding in trivet.doctor() if not finding.ok] == []


def _tables(connection: sqlite3.Connection) -> list[str]:
    found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    return [name for (name,) in found if not name.startswith(("sqlite_", "lexical"))]


def _columns(connection: sqlite3.Connection, table: str) -> str:
    return ", ".join(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))


def _rows(connection: sqlite3.Connection, table: str, columns: str) -> list[tuple[object, ...]]:
    return connection.execute(f"SELECT {columns} FROM {table} ORDER BY 1").fetchall()


def test_its_memories_come_into_the_graph(path: Path, open_trivet: Opened) -> None:
    met, office, secret, forgotten, _ = make_version_one(path)
    trivet = open_trivet()
    assert trivet.stats().schema == SCHEMA_VERSION
    assert trivet.stats().not_in_graph == 3, "neither the sensitive one nor the forgotten one"
    assert [finding.check for finding in trivet.doctor() if not finding.ok] == []
    assert trivet.recall("Rostock").hits[0].id == office.id
    trivet.drain()
    assert trivet.stats().not_in_graph == 0
    names = {concept.name for concept in trivet.concepts().concepts}
    assert names >= {"clara", "acme", "rostock", "spring"}
    assert "xyzzy" not in names
    assert "emil" not in names
    assert office.id in {hit.id for hit in trivet.recall("where did we meet Clara").hits}
    assert trivet.get(met.id) == met
    assert trivet.get(secret.id).sensitive
    trivet.restore(forgotten.id)
    trivet.drain()
    assert "emil" in {concept.name for concept in trivet.concepts().concepts}
    assert [finding.check for finding in trivet.doctor() if not finding.ok] == []


def test_it_is_migrated_once_by_many(path: Path) -> None:
    make_version_one(path, more=50)
    stores = [SqliteStore(path) for _ in range(3)]
    assert stores[0].graph.backlog("rules").waiting == 53
    assert len(stores[0].graph.lease("rules", 1_000, 60)) == 53
    assert SqliteStore(path).graph.lease("rules", 1_000, 60) == ()
    for store in stores:
        store.close()


def test_a_later_version_is_refused_and_left_alone(path: Path) -> None:
    SqliteStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=rf"newer Trivet.*{SCHEMA_VERSION + 1}.*upgrade"):
        SqliteStore(path)
    assert path.read_bytes() == before
