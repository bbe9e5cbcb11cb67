"""A store of an earlier version is brought up to this one, wholly or not at all; a later one is left alone."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from support.opened import Opened
from support.stores import add, link
from support.version_one import MEMORIES, contents, make_version, make_version_one
from trivet import StoreError, Trivet
from trivet.store.sqlite import database
from trivet.store.sqlite.database import SCHEMA_VERSION
from trivet.store.sqlite.store import SqliteStore
from trivet.types import LOCAL

Answers = dict[str, list[tuple[str, float]]]


def test_a_store_of_version_one_keeps_everything(path: Path) -> None:
    make_version_one(path)
    before = contents(path)
    SqliteStore(path).close()
    after = contents(path)
    assert after.pop("version") == [(SCHEMA_VERSION,)]
    assert set(before.pop("names")) < set(after.pop("names"))
    del before["version"]
    # The owner is new, and times are read with the next reindex.
    after["memory"] = [row[:-2] for row in after["memory"] if row[-2:] == (LOCAL, None)]
    after["passage"] = [
        row[:-1] for row in after["passage"] if row[-1] is None
    ]  # terms come with the next reindex
    after["revision"] = [
        row[:-3] for row in after["revision"] if row[-3:] == (None, None, None)
    ]  # sync names them
    assert after == before


@pytest.fixture(scope="module")
def answers_of_today(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What the same memories answer in a store that was never another version's."""
    path = tmp_path_factory.mktemp("today") / "memory.db"
    store = SqliteStore(path)
    add(store, *MEMORIES)
    store.links.add(link(MEMORIES[1], "supersedes", MEMORIES[4]))
    store.close()
    with Trivet.open(path, embedder="none", background=False) as trivet:
        return answers(trivet)


def answers(trivet: Trivet) -> Answers:
    """What each query finds, in order, with the scores: by words, and by way of the graph."""
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
def test_a_store_of_each_version_answers_as_one_of_today(
    path: Path, version: int, open_trivet: Opened, answers_of_today: Answers
) -> None:
    make_version(path, version)
    found = answers(open_trivet())
    assert found == answers_of_today
    assert found["Acme"]


@pytest.mark.parametrize("version", range(2, SCHEMA_VERSION))
def test_a_store_of_each_later_version_keeps_everything(
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


@pytest.mark.parametrize("version", range(1, SCHEMA_VERSION))
def test_each_older_version_refuses_a_store_of_today(
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


def test_a_later_version_is_refused_and_left_alone(path: Path) -> None:
    SqliteStore(path).close()
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=rf"newer Trivet.*{SCHEMA_VERSION + 1}.*upgrade"):
        SqliteStore(path)
    assert path.read_bytes() == before
