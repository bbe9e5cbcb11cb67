"""Older stores migrate completely or not at all, and newer stores are left untouched."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from support.store_fixtures import Opened
from support.stores import add, link
from support.version_one import MEMORIES, contents, make_version, make_version_one
from trivet import StoreError, Trivet
from trivet.store.sqlite import database
from trivet.store.sqlite.database import SCHEMA_VERSION
from trivet.store.sqlite.store import SqliteStore
from trivet.types import LOCAL

Answers = dict[str, list[tuple[str, float]]]


def test_migration_keeps_version_one_data(path: Path) -> None:
    make_version_one(path)
    before = contents(path)
    SqliteStore(path).close()
    after = contents(path)
    assert after.pop("version") == [(SCHEMA_VERSION,)]
    assert set(before.pop("names")) < set(after.pop("names"))
    del before["version"]
    # The owner column is new, and the next reindex fills the times.
    after["memory"] = [row[:-2] for row in after["memory"] if row[-2:] == (LOCAL, None)]
    after["passage"] = [
        row[:-1] for row in after["passage"] if row[-1] is None
    ]  # the next reindex fills the terms
    after["revision"] = [
        row[:-3] for row in after["revision"] if row[-3:] == (None, None, None)
    ]  # the next sync names the revisions
    assert after == before


@pytest.fixture(scope="module")
def current_answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """Answers for the same memories in a store created with the current schema."""
    path = tmp_path_factory.mktemp("today") / "memory.db"
    store = SqliteStore(path)
    add(store, *MEMORIES)
    store.links.add(link(MEMORIES[1], "supersedes", MEMORIES[4]))
    store.close()
    with Trivet.open(path, embedder="none", background=False) as trivet:
        return answers(trivet)


def answers(trivet: Trivet) -> Answers:
    """Return the hits and scores of each query, in order, by words and by graph."""
    trivet.drain()
    queries = (
        "Acme",
        "the office in Rostock",
        "where did we meet Clara",
        "forgotten words",
        "Xyzzy",
    )
    return {
        query: [(hit.id, round(hit.score, 6)) for hit in trivet.recall(query).hits]
        for query in queries
    }


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_migrated_store_answers_like_new_one(
    path: Path, version: int, open_trivet: Opened, current_answers: Answers
) -> None:
    make_version(path, version)
    found = answers(open_trivet())
    assert found == current_answers
    assert found["Acme"]


@pytest.mark.parametrize("version", range(2, SCHEMA_VERSION))
def test_migration_keeps_data_of_later_versions(
    path: Path, version: int, open_trivet: Opened
) -> None:
    memories = make_version(path, version, more=5)
    connection = sqlite3.connect(path)
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


def test_migrated_memories_enter_graph(path: Path, open_trivet: Opened) -> None:
    met, office, secret, forgotten, _ = make_version_one(path)
    trivet = open_trivet()
    assert trivet.stats().schema == SCHEMA_VERSION
    assert trivet.stats().not_in_graph == 3, "sensitive and forgotten memories do not count"
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


def test_concurrent_openers_migrate_once(path: Path) -> None:
    make_version_one(path, more=50)
    stores = [SqliteStore(path) for _ in range(3)]
    assert stores[0].graph.backlog("rules").waiting == 53
    assert len(stores[0].graph.lease("rules", 1_000, 60)) == 53
    assert SqliteStore(path).graph.lease("rules", 1_000, 60) == ()
    for store in stores:
        store.close()


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_older_version_rejects_current_store(
    path: Path, version: int, empty_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copy(empty_store, path)
    before = path.read_bytes()
    monkeypatch.setattr(database, "SCHEMA_VERSION", version)
    with pytest.raises(
        StoreError, match=rf"newer Trivet.*{SCHEMA_VERSION}.*knows {version}.*Nothing was.*upgrade"
    ):
        SqliteStore(path)
    assert path.read_bytes() == before


def test_newer_store_is_rejected_and_unchanged(path: Path) -> None:
    SqliteStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=rf"newer Trivet.*{SCHEMA_VERSION + 1}.*upgrade"):
        SqliteStore(path)
    assert path.read_bytes() == before
