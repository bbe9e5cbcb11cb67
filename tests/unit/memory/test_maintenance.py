"""Counting, checking, rebuilding, and backing up a store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from support.store_fixtures import Opened
from support.word_embedder import WordEmbedder
from trivet import StoreError, Trivet
from trivet.store.sqlite.database import SCHEMA_VERSION


def test_stats_count_everything(hybrid: Trivet, path: Path) -> None:
    one = hybrid.remember("one text", category="code", tags=["x", "y"], scope="a").id
    two = hybrid.remember("second text", tags=["x"], scope="b").id
    hybrid.remember("third text", sensitive=True)
    hybrid.link(two, "supersedes", one)
    hybrid.forget(hybrid.remember("fourth text").id)
    waiting = hybrid.stats()
    assert waiting.not_embedded == 2
    hybrid.drain()
    stats = hybrid.stats()
    assert dict(stats.memories) == {"active": 2, "deleted": 1, "superseded": 1}
    assert dict(stats.categories) == {"facts": 2, "code": 1}
    assert dict(stats.scopes) == {"a": 1, "b": 1, "default": 1}
    assert dict(stats.tags) == {"x": 2, "y": 1}
    assert (stats.links, stats.revisions, stats.sensitive, stats.passages) == (1, 5, 1, 2)
    assert (stats.not_embedded, stats.failing_jobs) == (0, 0)
    assert stats.path == str(path)
    assert "words" in (stats.embedder or "")
    assert (stats.schema, bool(stats.bytes)) == (SCHEMA_VERSION, True)


def test_healthy_store_has_no_findings(hybrid: Trivet) -> None:
    hybrid.remember("one text")
    hybrid.drain()
    assert [finding for finding in hybrid.doctor() if not finding.ok] == []


INCONSISTENCIES = {
    "missing from the lexical index": "DELETE FROM lexical WHERE rowid = 1",
    "gone memories in the lexical index": "UPDATE memory SET state = 'deleted' WHERE key = 1",
    "neither vector nor job": "DELETE FROM passage WHERE memory = 1",
    "deleted or sensitive": "UPDATE memory SET sensitive = 1 WHERE key = 1",
    "superseded state": "UPDATE memory SET state = 'superseded' WHERE key = 1",
    "without their revision": "DELETE FROM revision WHERE memory = 1",
}


@pytest.mark.parametrize("what", INCONSISTENCIES)
def test_doctor_reports_damage_with_a_remedy(hybrid: Trivet, path: Path, what: str) -> None:
    hybrid.remember("one text")
    hybrid.drain()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(INCONSISTENCIES[what])
    findings = [finding for finding in hybrid.doctor() if not finding.ok]
    assert any(what in finding.check and finding.remedy for finding in findings)


@pytest.mark.parametrize("what", list(INCONSISTENCIES)[:3])
def test_reindex_repairs_derived_data(hybrid: Trivet, path: Path, what: str) -> None:
    id = hybrid.remember("zebra text").id
    hybrid.remember("other text")
    hybrid.drain()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(INCONSISTENCIES[what])
    hybrid.reindex()
    deleted = hybrid.get(id).state == "deleted"
    assert ("lexical" in what and "gone" in what) == deleted
    problems = [finding.check for finding in hybrid.doctor() if not finding.ok]
    assert [check for check in problems if "lexical" in check or "neither" in check] == []
    if not deleted:
        assert hybrid.recall("zebra").hits[0].id == id


def test_reindex_counts_and_reports_progress(hybrid: Trivet, embedder: WordEmbedder) -> None:
    hybrid.remember_many({"content": f"text {number}"} for number in range(70))
    hybrid.drain()
    embedder.texts.clear()
    steps: list[int] = []
    assert hybrid.reindex(progress=steps.append) == 70
    assert sum(steps) == 70
    assert len(embedder.texts) == 70
    embedder.texts.clear()
    assert hybrid.reindex(vectors=False) == 0
    assert embedder.texts == []


def test_reindex_is_visible_to_other_open_stores(open_trivet: Opened, path: Path) -> None:
    ours, theirs = open_trivet(), open_trivet()
    id = ours.remember("zebra text").id
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DELETE FROM lexical")
    fresh = open_trivet()
    assert fresh.recall("zebra").hits == ()
    theirs.reindex()
    for trivet in (ours, theirs, fresh):
        assert [hit.id for hit in trivet.recall("zebra").hits] == [id]


def test_older_analyzer_triggers_reindex_on_open(open_trivet: Opened, path: Path) -> None:
    first = open_trivet()
    id = first.remember("zebra text").id
    first.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE meta SET value = '0' WHERE name = 'analyser'")
        connection.execute("UPDATE lexical SET content = 'horse'")
    again = open_trivet()
    assert [hit.id for hit in again.recall("zebra").hits] == [id]
    assert again.recall("horse").hits == ()


def test_backup_opens_as_a_store(
    hybrid: Trivet, open_trivet: Opened, tmp_path: Path, embedder: WordEmbedder
) -> None:
    id = hybrid.remember("zebra text").id
    hybrid.drain()
    hybrid.backup(tmp_path / "copy.db")
    hybrid.remember("written later")
    copy = open_trivet(tmp_path / "copy.db", embedder=embedder.spec())
    answer = copy.recall("zebra")
    assert [hit.id for hit in answer.hits] == [id]
    assert not answer.health.degraded
    assert copy.list().total == 1
    assert all(finding.ok for finding in copy.doctor())
    with pytest.raises(StoreError, match="exists"):
        hybrid.backup(tmp_path / "copy.db")


UNREADABLE_ROWS = {
    "invalid UTF-8": "UPDATE memory SET content = CAST(x'7a65ff6272' AS TEXT) WHERE id = :id",
    "invalid UTF-8 in a tag": "UPDATE memory_tag SET tag = CAST(x'ff' AS TEXT)",
    "flipped letter": "UPDATE memory SET content = replace(content, 'zebra', 'zebrb') WHERE id = :id",
    "not a number": "UPDATE memory SET importance = 'high' WHERE id = :id",
    "not a list": "UPDATE memory SET tags = '[\"a\"' WHERE id = :id",
    "not a time": "UPDATE memory SET created_at = 'yesterdax' WHERE id = :id",
    "invalid revision": "UPDATE revision SET snapshot = substr(snapshot, 2)",
    "orphaned revision": "DELETE FROM memory",
}


@pytest.mark.parametrize("damage", UNREADABLE_ROWS.values(), ids=UNREADABLE_ROWS)
def test_doctor_finds_every_row_that_cannot_be_read(
    trivet: Trivet, path: Path, damage: str
) -> None:
    id = trivet.remember("zebra text", tags=["a"]).id
    assert all(finding.ok for finding in trivet.doctor())
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = ON")
        connection.execute(damage, {"id": id} if ":id" in damage else {})
    problems = [finding for finding in trivet.doctor() if not finding.ok]
    assert [finding.check for finding in problems] == ["rows that can be read"]
    assert problems[0].matters


def test_quick_doctor_does_not_read_every_row(trivet: Trivet, path: Path) -> None:
    id = trivet.remember("zebra text").id
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(UNREADABLE_ROWS["flipped letter"], {"id": id})
    assert all(finding.ok for finding in trivet.doctor(quick=True))
