"""Each machine has its own index file of a tenant, which a purge, lost history or move removes."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from support.postgres_server import PostgresServer
from support.stores import add, embed, found, memory, near
from trivet.errors import Moved
from trivet.memory_fields import as_json
from trivet.store.postgres import PostgresStore, Server
from trivet.store.postgres import index_files as index_folder
from trivet.store.postgres.index_files import INDEX, MAX_NAMED_FILES
from trivet.store.postgres.tenant_move import forget_moved, move
from trivet.store.relational.index import index_files
from trivet.store.relational.index import write_index as build_index
from trivet.store.relational.index import write_index as index_upkeep
from trivet.types import Filter, Memory

from .test_cells import quietly

OnMachine = Callable[..., PostgresStore]
VECTOR = (0.6, 0.8, 0.0)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_upkeep, "MIN_MEMORIES", 1)
    monkeypatch.setattr(index_upkeep, "RENEW_AFTER_CHANGES", 0)


@pytest.fixture
def on(url: str, tmp_path: Path) -> Iterator[OnMachine]:
    """Open a store as a process on the named machine."""
    servers = []

    def opened(
        machine: str = "here", address: str = url, tenant: str = "acme", vector_bytes: int = 2**20
    ) -> PostgresStore:
        servers.append(Server(address, index_folder=tmp_path / machine, vector_bytes=vector_bytes))
        return PostgresStore(servers[-1], tenant)

    yield opened
    for server in servers:
        server.close()


def filled(store: PostgresStore, count: int = 5) -> list[Memory]:
    """Add memories and write the index file on this process's machine."""
    memories = [memory(f"relay {number}") for number in range(count)]
    add(store, *memories)
    model = store.vectors.adopt("words", "spec", 3)
    embed(
        store,
        model,
        {one.content: (*VECTOR[:2], number / 1000) for number, one in enumerate(memories)},
    )
    assert store.upkeep.renew_index()
    return memories


def files(tmp_path: Path, machine: str = "here") -> list[Path]:
    return [file for file in (tmp_path / machine).rglob("*") if file.is_file()]


def is_mapped(store: PostgresStore) -> bool:
    return store._database.mapped_index() is not None


def test_purge_removes_the_file_on_every_active_machine(on: OnMachine, tmp_path: Path) -> None:
    here, there = on("here"), on("there")
    one = filled(here)[0]
    assert there.upkeep.renew_index()
    vector = there.vectors.of_memory(there.vectors.models()[0], 1)
    assert vector is not None
    canaries = one.id.encode(), vector.tobytes()
    for machine in ("here", "there"):
        (file,) = files(tmp_path, machine)
        assert all(canary in file.read_bytes() for canary in canaries)
    here.memories.purge(one.id)
    assert files(tmp_path, "here") == [], "before the purge returns"
    assert one.id not in found(on("there"), "relay")
    assert files(tmp_path, "there") == [], "before any process there uses it"
    assert there.upkeep.renew_index()
    (file,) = files(tmp_path, "there")
    assert not any(canary in file.read_bytes() for canary in canaries)


def test_permanent_rewrite_removes_files_too(on: OnMachine, tmp_path: Path) -> None:
    """A redaction erases like a purge."""
    store = on()
    filled(store)
    with store._database.erasing():
        assert len(files(tmp_path)) == 1, "until it is committed"
    assert files(tmp_path) == []


def test_file_kept_during_an_outage_is_removed_on_the_next_use(
    on: OnMachine, tmp_path: Path
) -> None:
    filled(on())
    away = on()
    away._database.server.close()
    away._database.index_files.remove_all()
    assert len(files(tmp_path)) == 1
    with on("elsewhere")._database.erasing():
        pass
    assert on().upkeep.pending_erasure()
    assert files(tmp_path) == []


def test_worker_removes_the_file_after_a_purge_elsewhere(on: OnMachine, tmp_path: Path) -> None:
    here, there = on("here"), on("there")
    one = filled(there)[0]
    here.memories.purge(one.id)
    assert len(files(tmp_path, "there")) == 1
    there.upkeep.pending_erasure()
    assert files(tmp_path, "there") == []


def test_processes_of_a_machine_share_the_file_by_any_address(
    on: OnMachine, tmp_path: Path, url: str
) -> None:
    one = filled(on())[0]
    other = on(address=f"{url}&application_name=other")
    assert is_mapped(other)
    other.memories.purge(one.id)
    assert files(tmp_path) == []


def test_purge_elsewhere_during_a_write_discards_the_file(
    on: OnMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = on("here"), on("there")
    one = filled(here)[0]
    words = build_index._write_words

    def purge_during_write(*written: object) -> None:
        here.memories.purge(one.id)
        words(*written)  # type: ignore[arg-type]

    monkeypatch.setattr(build_index, "_write_words", purge_during_write)
    assert not there.upkeep.renew_index()
    assert files(tmp_path, "there") == []


def test_file_begun_before_a_crash_is_not_registered(
    on: OnMachine, tmp_path: Path, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a failover or a crash it may hold lost data."""
    store = on()
    add(store, memory("relay"))
    words = build_index._write_words

    def crash_during_write(*written: object) -> None:
        with psycopg.connect(url.replace("trivet@", "postgres@"), autocommit=True) as administrator:
            administrator.execute("SELECT pg_stat_reset_shared('archiver')")  # as a crash does
        words(*written)  # type: ignore[arg-type]

    monkeypatch.setattr(build_index, "_write_words", crash_during_write)
    assert not store.upkeep.renew_index()
    assert files(tmp_path) == []


def test_restored_database_ignores_a_file_with_lost_data(
    on: OnMachine, tmp_path: Path, url: str, postgres: PostgresServer
) -> None:
    store = on()
    kept = filled(store)
    database = str(psycopg.conninfo.conninfo_to_dict(url)["dbname"])
    store._database.server.close()
    backup = postgres.empty_database(template=database)
    lost = on(address=backup)  # changes to this copy are lost after the restore
    add(lost, *(memory(f"relay lost {number}") for number in range(5)))
    assert lost.upkeep.renew_index(), "in the same folder, because the name is the same"
    lost._database.server.close()
    postgres.drop(backup)
    back = on()
    assert not is_mapped(back)
    assert files(tmp_path) == []
    add(back, *(memory(f"relay new {number}") for number in range(6)))
    assert len(found(back, "relay")) == len(kept) + 6
    assert found(back, "lost") == []


def test_diverged_copy_uses_the_file_of_the_shared_past(
    on: OnMachine, url: str, postgres: PostgresServer
) -> None:
    store = on()
    kept = filled(store)
    store._database.server.close()
    other = postgres.empty_database(template=str(psycopg.conninfo.conninfo_to_dict(url)["dbname"]))
    copy = on(address=other)
    add(copy, memory("relay of the copy"))
    assert is_mapped(copy)
    assert len(found(copy, "relay")) == len(kept) + 1
    assert len(found(on(), "relay")) == len(kept)
    copy._database.server.close()
    postgres.drop(other)


def test_moved_tenant_leaves_no_file_behind(
    on: OnMachine, tmp_path: Path, server: Server, postgres: PostgresServer
) -> None:
    here, there = on("here"), on("there")
    kept = filled(here)
    assert there.upkeep.renew_index()
    address = postgres.database()
    new = Server(address, index_folder=tmp_path / "new")
    server.index_folder.root = tmp_path / "here"
    move(server, new, "acme", quietly)
    assert files(tmp_path, "here") == [], "where the command ran"
    with pytest.raises(Moved):
        found(there, "relay")
    assert files(tmp_path, "there") == [], "where a process noticed the move"
    moved = PostgresStore(new, "acme")
    assert (
        moved._database.read()
        .execute("SELECT 1 FROM meta WHERE starts_with(name, 'index')")
        .fetchall()
        == []
    )
    assert len(found(moved, "relay")) == len(kept)
    forget_moved(server, new, "acme")
    move(new, server, "acme", quietly)
    assert not is_mapped(on("there"))
    new.close()
    postgres.drop(address)


def test_users_see_no_more_with_the_file_than_without(on: OnMachine) -> None:
    store = on()
    add(store, memory("relay of ana", owner="ana"), memory("relay of ben", owner="ben"))
    assert store.upkeep.renew_index()
    reader = on()
    index = reader._database.mapped_index()
    assert index is not None
    assert index.shown(Filter()) is not None
    assert index.shown(Filter(viewer="ana")) is None
    (only,) = found(reader, "relay", Filter(viewer="ana"))
    assert reader.memories.get(only).owner == "ana"


def test_partial_file_of_a_killed_writer_is_removed(on: OnMachine, tmp_path: Path) -> None:
    filled(on())
    (whole,) = files(tmp_path)
    written, left = whole.with_name("written.partial"), whole.with_name("left.partial")
    written.touch()
    left.touch()
    long_ago = time.time() - index_files.LEASE_SECONDS - 60
    os.utime(left, (long_ago, long_ago))
    assert is_mapped(on())
    assert set(files(tmp_path)) == {whole, written}


def test_files_of_tenants_are_separate(on: OnMachine, tmp_path: Path) -> None:
    filled(on())
    birch = on(tenant="birch")
    assert not is_mapped(birch)
    add(birch, memory("birch"))
    assert birch.upkeep.renew_index()
    assert len({file.parent for file in files(tmp_path)}) == 2
    assert is_mapped(on())


def test_backup_names_no_file(on: OnMachine, tmp_path: Path) -> None:
    store = on()
    filled(store)
    store.upkeep.backup(tmp_path / "backup.db")
    assert files(tmp_path)[0].stem.encode() not in (tmp_path / "backup.db").read_bytes()


def test_file_accessible_to_others_is_not_used_or_written(on: OnMachine, tmp_path: Path) -> None:
    store = on()
    filled(store)
    folder = files(tmp_path)[0].parent
    folder.chmod(0o755)
    assert not is_mapped(on())
    add(store, memory("one more"))
    assert not store.upkeep.renew_index()
    assert len(files(tmp_path)) == 1


def test_file_omits_vectors_that_the_database_searches(on: OnMachine) -> None:
    store = on(vector_bytes=16)
    filled(store)
    index = store._database.mapped_index()
    assert index is not None
    assert index.facts.model == 0


def test_mapped_vectors_do_not_count_toward_vector_memory(on: OnMachine) -> None:
    filled(on())
    store = on()
    model = store.vectors.models()[0]
    assert near(store, model, VECTOR)
    assert [held for held, _ in store._database.server.vector_memory._taken.values()] == [0]
    assert store.vectors._cache.bytes(model) > 0, "this size decides who searches"


def test_names_of_gone_machines_are_forgotten(on: OnMachine) -> None:
    store = on()
    with store._database.write() as transaction:
        for number in range(MAX_NAMED_FILES + 5):
            row = {"name": f"{INDEX}{number}", "value": f"{number} 1 {number}"}
            transaction.execute(transaction.sql("maintenance")["set_meta"], row)
    filled(store)
    count = "SELECT count(*) FROM meta WHERE starts_with(name, 'index ')"
    assert store._database.read().execute(count).fetchall() == [(MAX_NAMED_FILES,)]
    named = store._database.sql("maintenance")["index_names"]
    assert (
        not store._database.read().execute(named, {"names": as_json([f"{INDEX}0"])}).fetchall()
    ), "the oldest"
    assert is_mapped(store)


def test_long_unused_files_are_removed_and_others_stay(on: OnMachine, tmp_path: Path) -> None:
    filled(on())
    (used,) = files(tmp_path)
    filled(on(tenant="birch"))
    (unused,) = set(files(tmp_path)) - {used}
    long_ago = time.time() - index_folder.UNUSED_SECONDS - 60
    for folder in (used.parent, unused.parent):
        os.utime(folder, (long_ago, long_ago))
    assert is_mapped(on())
    strange = tmp_path / "here" / ("0" * 32) / "of somebody else.arrays.old"
    strange.parent.mkdir(mode=0o700)
    strange.touch()
    os.utime(strange.parent, (long_ago, long_ago))
    on(tenant="other").upkeep.renew_index()
    assert set(files(tmp_path)) == {used, strange}
    assert not unused.parent.exists()


def test_least_recently_used_files_are_removed_first(
    on: OnMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(on())
    (used,) = files(tmp_path)
    filled(on(tenant="birch"))
    (unused,) = set(files(tmp_path)) - {used}
    os.utime(unused.parent, (time.time() - 60, time.time() - 60))
    monkeypatch.setattr(index_folder, "MAX_FOLDER_BYTES", used.stat().st_size)
    on(tenant="other").upkeep.renew_index()
    assert files(tmp_path) == [used]
