"""Purged text leaves the store's files; a blocked erasure is reported and finished later."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from support.store_fixtures import open_trivet, trivet
from support.stores import ADDRESS, Open, add, administrators, at_rest, memory
from trivet import Trivet
from trivet.store.relational.store import RelationalStore as Store
from trivet.store.sqlite import database

# SQLite file format: the type of a table leaf page, and the length of its header.
TABLE_LEAF, LEAF_HEADER = 13, 8

__all__ = ["open_trivet", "trivet"]


def deleted_rows(folder: Path) -> int:
    """Return the number of dead row versions in PostgreSQL's pages; always 0 for SQLite."""
    if not (folder / ADDRESS).exists():
        return 0
    with psycopg.connect(administrators(folder), autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS pgstattuple")
        tables = ("memory", "revision", "lexical", "posting")
        dead = "SELECT dead_tuple_count FROM pgstattuple(%s)"
        return sum(
            row[0] for table in tables for row in connection.execute(dead, [table]).fetchall()
        )


def unsound(store: Store) -> list[str]:
    return [finding.check for finding in store.upkeep.findings() if not finding.ok]


def test_blocked_erasure_is_pending_until_the_read_ends(open_store: Open, tmp_path: Path) -> None:
    store, reader = open_store(), open_store()
    one = memory("the word xyzzy")
    add(store, one, memory("other words"))
    with reader._database.snapshot() as reading:
        reading.execute("SELECT count(*) FROM memory").fetchone()
        store.memories.purge(one.id)
        assert "has not ended" in str(store.upkeep.finish_erasing())
        assert unsound(store) == ["purged memories"]
        assert store.upkeep.pending_erasure() is not None
    assert open_store().upkeep.finish_erasing() is None, "the next caller finishes the erasure"
    assert store.upkeep.pending_erasure() is None
    assert unsound(store) == []
    assert b"xyzzy" not in at_rest(tmp_path)
    assert deleted_rows(tmp_path) == 0


def test_worker_finishes_pending_erasure(trivet: Trivet, path: Path) -> None:
    id = trivet.remember("the word xyzzy").id
    with closing(sqlite3.connect(path, isolation_level=None)) as reading:
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM memory").fetchone()
        assert trivet.purge(id).pending
        assert b"xyzzy" in at_rest(path.parent)
    trivet.engine.worker._drain_in_background()
    assert b"xyzzy" not in at_rest(path.parent)
    assert trivet.engine.store.upkeep.pending_erasure() is None


def leave_a_copy(file: Path, text: bytes) -> None:
    """Write into the free space of a page, where SQLite leaves rows that it moved."""
    data = bytearray(file.read_bytes())
    size = int.from_bytes(data[16:18])
    for page in range(size, len(data), size):
        start = page + LEAF_HEADER + 2 * int.from_bytes(data[page + 3 : page + 5])
        if data[page] == TABLE_LEAF and page + int.from_bytes(
            data[page + 5 : page + 7]
        ) > start + len(text):
            data[start : start + len(text)] = text
            file.write_bytes(data)
            return
    raise AssertionError("no page has room for it")


def test_no_copy_stays_in_free_page_space(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "WORKER_VACUUM_MAX_BYTES", 0)
    monkeypatch.setattr(database, "INLINE_VACUUM_MAX_BYTES", 0)
    with Trivet.open(path, embedder="none", background=False) as trivet:
        id = trivet.remember("the word xyzzy").id
    leave_a_copy(path, b"the word xyzzy")
    with Trivet.open(path, embedder="none", background=False) as trivet:
        assert "trivet doctor" in str(trivet.purge(id).pending), (
            "a purge does not rewrite a large file"
        )
        assert b"xyzzy" in at_rest(path.parent)
        assert all(finding.ok for finding in trivet.doctor())
        assert b"xyzzy" not in at_rest(path.parent)


def test_unread_text_is_erased_at_once(store: Store, tmp_path: Path) -> None:
    one = memory("the word xyzzy")
    add(store, one)
    with store.together():
        store.memories.purge(one.id)
    assert store.upkeep.finish_erasing() is None
    assert b"xyzzy" not in at_rest(tmp_path)
    assert deleted_rows(tmp_path) == 0
