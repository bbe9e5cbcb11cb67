"""Opening a store: permissions, foreign or damaged files, and concurrent use."""

from __future__ import annotations

import os
import sqlite3
import stat
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from support.store_fixtures import Opened, write_and_recall_at_once
from support.stores import add, memory
from trivet import InvalidInput, Settings, StoreError, Trivet
from trivet.store.sqlite.store import SqliteStore


def test_store_folder_and_file_are_private_to_the_owner(
    open_trivet: Opened, tmp_path: Path
) -> None:
    where = tmp_path / "deep" / "er" / "memory.db"
    open_trivet(where).remember("text")
    assert stat.S_IMODE(where.stat().st_mode) == 0o600
    assert stat.S_IMODE(where.parent.stat().st_mode) == 0o700
    for file in where.parent.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_written_memories_survive_reopening(open_trivet: Opened) -> None:
    first = open_trivet()
    id = first.remember("zebra text").id
    first.close()
    assert [hit.id for hit in open_trivet().recall("zebra").hits] == [id]


def test_with_block_closes_the_store(path: Path) -> None:
    with Trivet.open(path, embedder="none") as trivet:
        trivet.remember("text")
    with pytest.raises(StoreError, match="closed"):
        trivet.recall("text")


def test_two_open_stores_see_each_others_writes(open_trivet: Opened) -> None:
    ours, theirs = open_trivet(), open_trivet()
    id = ours.remember("zebra text").id
    assert [hit.id for hit in theirs.recall("zebra").hits] == [id]
    theirs.edit(id, content="horse text")
    assert ours.recall("zebra").hits == ()
    assert [hit.id for hit in ours.recall("horse").hits] == [id]
    ours.forget(id)
    assert theirs.recall("horse").hits == ()
    theirs.restore(id)
    assert [hit.id for hit in ours.recall("horse").hits] == [id]
    other = theirs.remember("newer horse").id
    ours.link(other, "supersedes", id)
    assert [hit.id for hit in theirs.recall("horse").hits] == [other]
    ours.purge(other)
    assert [hit.id for hit in theirs.recall("horse").hits] == [id]


def test_threads_share_one_store(trivet: Trivet) -> None:
    write_and_recall_at_once(trivet, threads=6, turns=10)


def test_newer_schema_is_refused_and_untouched(open_trivet: Opened, path: Path) -> None:
    open_trivet().close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA user_version = 99")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="newer Trivet"):
        open_trivet()
    assert path.read_bytes() == before


@pytest.mark.parametrize("journal", ["delete", "wal"])
def test_foreign_database_is_refused_and_untouched(
    open_trivet: Opened, path: Path, journal: str
) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA journal_mode = {journal}")
        connection.execute("CREATE TABLE precious (thing TEXT)")
        connection.execute("INSERT INTO precious VALUES ('gold')")
        connection.commit()
    before = path.read_bytes()
    with pytest.raises(StoreError, match="another program"):
        open_trivet()
    assert path.read_bytes() == before
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT thing FROM precious").fetchall() == [("gold",)]


@pytest.mark.parametrize(
    "content", [b"not a database at all, just a text that is long enough" * 30, b"short"]
)
def test_non_database_file_is_refused_and_untouched(
    open_trivet: Opened, path: Path, content: bytes
) -> None:
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not a Trivet store"):
        open_trivet()
    assert path.read_bytes() == content


def test_damaged_store_raises_an_error(open_trivet: Opened, path: Path) -> None:
    trivet = open_trivet()
    trivet.remember_many({"content": f"text number {number} " * 20} for number in range(200))
    trivet.close()
    damaged = bytearray(path.read_bytes())
    damaged[4096:] = os.urandom(len(damaged) - 4096)
    path.write_bytes(damaged)
    with pytest.raises(StoreError, match="damaged"):
        open_trivet().list()


def test_folder_instead_of_file_is_refused(open_trivet: Opened, path: Path) -> None:
    path.mkdir()
    with pytest.raises(StoreError, match="not a file but a folder"):
        open_trivet()


def test_device_is_refused(open_trivet: Opened) -> None:
    with pytest.raises(StoreError, match="device"):
        open_trivet(Path("/dev/null"))
    assert not Path("/dev/null-journal").exists()


@pytest.mark.parametrize(
    "address", ["postgresql:/trivet@/test", "postgrsql://db/trivet", "sqlite:///memory.db"]
)
def test_invalid_address_creates_no_file(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="looks like an address"):
        Trivet.open(Path(address), embedder="none")
    with pytest.raises(InvalidInput, match="looks like an address"):
        Trivet.open(address, embedder="none")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_deleted_log_blocks_writes_without_loss(
    open_trivet: Opened, path: Path, suffix: str
) -> None:
    trivet = open_trivet()
    id = trivet.remember("before").id
    path.with_name(path.name + suffix).unlink()
    with pytest.raises(StoreError, match=f"{suffix} was deleted or replaced"):
        trivet.remember("after")
    [found] = [finding for finding in trivet.doctor() if finding.check == "file in its place"]
    assert not found.ok
    assert [memory.id for memory in open_trivet().list().memories] == [id]


def test_ended_thread_does_not_remove_the_log(path: Path) -> None:
    with ThreadPoolExecutor(1) as pool:
        store = pool.submit(SqliteStore, path).result()
    add(store, memory("from another thread"))
    add(store, memory("and once more"))
    store.close()


def test_deleted_store_blocks_writes(open_trivet: Opened, path: Path) -> None:
    trivet = open_trivet()
    trivet.remember("before")
    path.unlink()
    with pytest.raises(StoreError, match="deleted or replaced"):
        trivet.remember("after")
    assert "file in its place" in [finding.check for finding in trivet.doctor() if not finding.ok]


def test_file_instead_of_folder_is_refused(open_trivet: Opened, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be created"):
        open_trivet(tmp_path / "file" / "memory.db")


def test_path_argument_overrides_settings(path: Path) -> None:
    settings = Settings(embedder="none", background=False)
    with Trivet.open(path, settings=settings) as trivet:
        assert trivet.settings.path == str(path)
        assert trivet.settings.embedder == "none"
    assert path.exists()


def test_busy_store_raises_an_error_and_writes_nothing(open_trivet: Opened, path: Path) -> None:
    trivet = open_trivet(busy_time_limit_ms=50)
    trivet.remember("text")
    with closing(sqlite3.connect(path, isolation_level=None)) as blocker:
        blocker.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreError, match=r"Another process.*try again"):
            trivet.remember("blocked")
        assert trivet.recall("text").hits, "reads must still work"
        blocker.execute("ROLLBACK")
    assert trivet.list().total == 1
    trivet.remember("free again")
    assert trivet.list().total == 2
