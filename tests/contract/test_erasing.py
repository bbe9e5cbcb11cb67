"""What is purged goes from the files too; while something keeps it there, that is said, and it is finished later."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import psycopg

from support.opened import open_trivet, trivet
from support.stores import ADDRESS, Open, add, at_rest, memory
from trivet import Trivet
from trivet.store.relational.store import RelationalStore as Store

__all__ = ["open_trivet", "trivet"]


def deleted_rows(folder: Path) -> int:
    """Versions of rows that PostgreSQL still keeps; a file has none."""
    if not (folder / ADDRESS).exists():
        return 0
    with psycopg.connect((folder / ADDRESS).read_text(), autocommit=True) as connection:
        [(dead,)] = connection.execute("SELECT sum(pg_stat_get_dead_tuples(c.oid)) FROM pg_class AS c WHERE relname "
                                       "IN ('memory', 'revision', 'lexical', 'posting')").fetchall()  # fmt: skip
    return int(dead)


def unsound(store: Store) -> list[str]:
    return [finding.check for finding in store.upkeep.findings() if not finding.ok]


def test_words_that_a_long_read_keeps_are_pending_until_it_ends(open_store: Open, tmp_path: Path) -> None:
    store, reader = open_store(), open_store()
    one = memory("the word xyzzy")
    add(store, one, memory("other words"))
    with reader._database.snapshot() as reading:
        reading.execute("SELECT count(*) FROM memory").fetchone()
        store.memories.purge(one.id)
        assert "has not ended" in str(store.upkeep.finish_erasing())
        assert unsound(store) == ["purged memories"]
        assert store.upkeep.pending_erasure() is not None
    assert open_store().upkeep.finish_erasing() is None, "whoever comes next finishes it"
    assert store.upkeep.pending_erasure() is None
    assert unsound(store) == []
    assert b"xyzzy" not in at_rest(tmp_path)
    assert deleted_rows(tmp_path) == 0


def test_the_worker_finishes_it(trivet: Trivet, path: Path) -> None:
    id = trivet.remember("the word xyzzy").id
    with closing(sqlite3.connect(path, isolation_level=None)) as reading:
        reading.execute("BEGIN")
        reading.execute("SELECT count(*) FROM memory").fetchone()
        assert trivet.purge(id).pending
        assert b"xyzzy" in at_rest(path.parent)
    trivet.engine.worker._drain_in_background()
    assert b"xyzzy" not in at_rest(path.parent)
    assert trivet.engine.store.upkeep.pending_erasure() is None


def test_what_nobody_reads_is_gone_at_once(store: Store, tmp_path: Path) -> None:
    one = memory("the word xyzzy")
    add(store, one)
    with store.together():
        store.memories.purge(one.id)
    assert store.upkeep.finish_erasing() is None
    assert b"xyzzy" not in at_rest(tmp_path)
    assert deleted_rows(tmp_path) == 0
