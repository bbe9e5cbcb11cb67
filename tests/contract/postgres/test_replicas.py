"""Reads use real streaming standbys that are current, never older than the caller's own writes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from itertools import count

import msgspec
import psycopg
import pytest

from support.postgres_server import PostgresServer
from support.stores import add, found, memory, replace
from support.waiting import ended, grown
from trivet.errors import StoreError
from trivet.store.postgres import PostgresStore, Server
from trivet.store.relational.index import write_index as index_upkeep
from trivet.types import Filter

LONG = 3_600.0


class Pair:
    """A primary and its standby. Commits wait until the standby has replayed them."""

    def __init__(self) -> None:
        self.primary = PostgresServer()
        self.database = self.primary.database()
        self.standby = PostgresServer(self.primary)
        self.primary.set("synchronous_standby_names", "*")
        self.follow_closely(True)

    @property
    def copy(self) -> str:
        return self.standby.url(str(psycopg.conninfo.conninfo_to_dict(self.database)["dbname"]))

    @property
    def either(self) -> str:
        """Return the address of whichever of the two is the primary."""
        hosts = f"host={self.primary.folder},{self.standby.folder}"
        return self.database.partition("?")[0] + f"?{hosts}&target_session_attrs=read-write"

    def follow_closely(self, closely: bool) -> None:
        self.primary.set("synchronous_commit", "remote_apply" if closely else "local")

    def replay(self, goes_on: bool) -> None:
        with self.standby.administrator() as connection:
            connection.execute(f"SELECT pg_wal_replay_{'resume' if goes_on else 'pause'}()")
            while connection.execute("SELECT pg_get_wal_replay_pause_state()").fetchone() == (
                "pause requested",
            ):
                pass

    def remove(self) -> None:
        self.standby.remove()
        self.primary.remove()


@pytest.fixture(scope="module")
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.remove()


@pytest.fixture
def doomed() -> Iterator[Pair]:
    """A pair whose primary dies."""
    made = Pair()
    yield made
    made.remove()


_tenants = count()


@pytest.fixture
def tenant() -> str:
    return f"tenant-{next(_tenants)}"


@pytest.fixture
def server(pair: Pair) -> Iterator[Server]:
    opened = Server(pair.database, replica_urls=[pair.copy], replica_lag_seconds=LONG)
    yield opened
    opened.close()
    pair.follow_closely(True)


def chosen(server: Server) -> int:
    return sum(state.chosen for state in server.replicas.states())


def behind(server: Server) -> int:
    return sum(state.behind for state in server.replicas.states())


def read(store: PostgresStore, words: str) -> list[str]:
    """Search like a recall does."""
    with store.moment():
        return found(store, words)


def test_moment_is_read_from_the_standby(server: Server, tenant: str, pair: Pair) -> None:
    store, one = PostgresStore(server, tenant), memory("relay")
    add(store, one)
    assert read(store, "relay") == [one.id]
    assert chosen(server) == 1
    pair.primary.stop()
    try:
        assert read(store, "relay") == [one.id], "the primary is not queried"
        assert chosen(server) == 2
    finally:
        pair.primary.start()


def test_process_reads_its_own_writes(server: Server, tenant: str, pair: Pair) -> None:
    store = PostgresStore(server, tenant)
    pair.follow_closely(False)
    pair.replay(False)
    try:
        for word in ("apple", "pear", "plum"):
            one = memory(f"relay {word}")
            add(store, one)
            assert read(store, word) == [one.id]
        assert chosen(server) == 0
        assert behind(server) == 3
    finally:
        pair.replay(True)
    while not chosen(server):  # it catches up, and is used again
        assert len(read(store, "relay")) == 3


def test_standby_behind_the_bound_is_not_used(pair: Pair, tenant: str) -> None:
    patient = Server(pair.database, replica_urls=[pair.copy], replica_lag_seconds=LONG)
    hasty = Server(pair.database, replica_urls=[pair.copy], replica_lag_seconds=0.05)
    writer, one = PostgresStore(pair.database, tenant), memory("relay")
    stores = [PostgresStore(server, tenant) for server in (patient, hasty)]
    assert [read(store, "relay") for store in stores] == [[], []]
    pair.follow_closely(False)
    pair.replay(False)
    try:
        add(writer, one)
        while read(stores[1], "relay") != [one.id]:
            pass
        assert behind(hasty) > 0
        assert read(stores[0], "relay") == [], (
            "within the bound the standby answers without the new memory"
        )
    finally:
        pair.replay(True)
        pair.follow_closely(True)
    for server in (patient, hasty):
        server.close()
    writer.close()


def test_caches_do_not_mix_moments(server: Server, tenant: str, pair: Pair) -> None:
    """While a recall reads a standby, other threads of the process read more from the primary."""
    store, other = PostgresStore(server, tenant), PostgresStore(pair.database, tenant)
    old = memory("relay alpha")
    add(store, old)
    assert read(store, "alpha") == [old.id]
    pair.follow_closely(False)
    pair.replay(False)
    new = memory("relay beta")
    try:
        with store.moment():
            replace(other, msgspec.structs.replace(old, content="relay gamma"))
            add(other, new)
            learned: list[list[str]] = []
            looking = threading.Thread(target=lambda: learned.append(found(store, "relay")))
            looking.start()
            ended(looking)
            assert learned == [[old.id, new.id]], "outside the moment the primary answers"
            for words in ("alpha", "beta", "gamma", "relay"):
                found(store, words)
            store.memories.visible_count(Filter())
        assert chosen(server) == 2
        assert read(store, "beta") == [new.id], (
            "the standby is behind what this process knows, so it is not used"
        )
        assert chosen(server) == 2
    finally:
        pair.replay(True)
    for words, expected in (
        ("beta", [new.id]),
        ("gamma", [old.id]),
        ("alpha", []),
        ("relay", [old.id, new.id]),
    ):
        assert found(store, words) == expected
    other.close()


def test_outdated_standby_does_not_revive_a_purged_index_file(
    server: Server, tenant: str, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_upkeep, "MIN_MEMORIES", 1)
    store, other = PostgresStore(server, tenant), PostgresStore(pair.database, tenant)
    one = memory("relay")
    add(store, one)
    assert store.upkeep.renew_index()
    assert read(store, "relay") == [one.id]
    other._database.index_files.remove_all = lambda: None  # type: ignore[method-assign]  # another machine
    pair.follow_closely(False)
    pair.replay(False)
    try:
        with store.moment():
            before = chosen(server)
            assert before
            other.memories.purge(one.id)
            assert store._database.mapped_index() is None
            assert not [
                file for file in store._database.index_files.folder.iterdir() if file.is_file()
            ]
            assert found(store, "relay") == [one.id], "as of the moment that began before"
    finally:
        pair.replay(True)
    other.close()


def test_dead_standby_is_skipped_and_returns(pair: Pair, tenant: str) -> None:
    server = Server(pair.database, replica_urls=[pair.copy], replica_lag_seconds=1.0)
    store, one = PostgresStore(server, tenant), memory("relay")
    add(store, one)
    assert read(store, "relay") == [one.id]
    pair.follow_closely(False)
    pair.standby.stop("immediate")
    try:
        before = chosen(server)
        for _ in range(20):
            assert read(store, "relay") == [one.id]
        (state,) = server.replicas.states()
        assert (state.chosen, state.up) == (before, False)
        assert state.failed >= 1
        assert state.trouble
    finally:
        pair.standby.start()
    while chosen(server) == before:
        assert read(store, "relay") == [one.id]
    pair.follow_closely(True)
    server.close()


def test_standby_that_dies_during_a_read_is_abandoned(pair: Pair, tenant: str) -> None:
    server = Server(pair.database, replica_urls=[pair.copy], replica_lag_seconds=LONG)
    store, one = PostgresStore(server, tenant), memory("relay")
    add(store, one)
    pair.follow_closely(False)
    try:
        with store.moment():
            assert chosen(server) == 1
            pair.standby.stop("immediate")
            assert found(store, "relay") == [one.id]
            assert store.memories.get(one.id) == one
    finally:
        pair.standby.start()
        pair.follow_closely(True)
    server.close()


def test_unreachable_standby_is_skipped_and_reported(pair: Pair, tenant: str) -> None:
    server = Server(pair.database, replica_urls=["postgresql://trivet@127.0.0.1:1/none"])
    store, one = PostgresStore(server, tenant), memory("relay")
    add(store, one)
    assert read(store, "relay") == [one.id]
    (state,) = server.replicas.states()
    assert not state.up
    findings = {finding.check: finding for finding in store.upkeep.findings()}
    assert not findings["standbys"].ok
    assert "127.0.0.1" in findings["standbys"].detail
    server.close()


def test_standby_refuses_a_role_that_bypasses_policies(pair: Pair, tenant: str) -> None:
    above = pair.copy.replace("trivet@", "postgres@")
    server = Server(pair.database, replica_urls=[above], replica_lag_seconds=LONG)
    store = PostgresStore(server, tenant)
    add(store, memory("relay"))
    read(store, "relay")
    (state,) = server.replicas.states()
    assert (state.up, state.chosen) == (False, 0)
    assert "row-level security" in str(state.trouble)
    server.close()


def test_promotion_loses_no_acknowledged_write(doomed: Pair, tenant: str) -> None:
    server = Server(doomed.either, replica_urls=[doomed.copy], replica_lag_seconds=1.0)
    store = PostgresStore(server, tenant)
    acknowledged: list[str] = []
    refused: list[str] = []
    enough = threading.Event()

    def write() -> None:
        while not enough.is_set():
            one = memory("relay")
            try:
                add(store, one)
            except StoreError as error:
                refused.append(str(error))
                continue
            acknowledged.append(one.id)

    def recall() -> None:
        while not enough.is_set():
            known = set(acknowledged)
            try:
                answer = set(read(store, "relay"))
            except StoreError as error:
                refused.append(str(error))
                continue
            assert known <= answer

    threads = [threading.Thread(target=work) for work in (write, write, recall)]
    for thread in threads:
        thread.start()
    grown(acknowledged, 30)
    doomed.primary.stop("immediate")
    doomed.standby.promote()
    grown(acknowledged, len(acknowledged) + 30)
    enough.set()
    for thread in threads:
        ended(thread)
    assert set(acknowledged) <= {one.id for one in store.memories.everything()}
    assert set(found(store, "relay", depth=100_000)) >= set(acknowledged)
    assert all("lost" in text for text in refused), "each error says what happened"
    assert all(finding.ok for finding in store.upkeep.findings() if finding.check != "standbys")
    server.close()


def test_caches_and_index_files_forget_what_a_failover_lost(
    doomed: Pair, tenant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A standby that missed the last writes reuses the numbers of the lost ones."""
    server = Server(doomed.either)
    store = PostgresStore(server, tenant)
    kept, lost, new = memory("relay kept"), memory("relay lost"), memory("relay new")
    add(store, kept)
    doomed.follow_closely(False)
    doomed.standby.set("primary_conninfo", "")
    with doomed.standby.administrator() as connection:
        while connection.execute("SELECT 1 FROM pg_stat_wal_receiver").fetchone():
            pass
    add(store, lost)
    assert set(found(store, "relay")) == {kept.id, lost.id}
    monkeypatch.setattr(index_upkeep, "MIN_MEMORIES", 1)
    assert store.upkeep.renew_index()
    doomed.primary.stop("immediate")
    doomed.standby.promote()
    with Other(doomed, tenant) as other:
        assert other._database.mapped_index() is None, "the file holds lost data"
        add(other, new)
        assert set(found(other, "relay")) == {kept.id, new.id}
    assert set(found(store, "relay")) == {kept.id, new.id}
    assert found(store, "lost") == []
    assert store.memories.visible_count(Filter()) == 2
    server.close()


class Other:
    """A store in another process."""

    def __init__(self, pair: Pair, tenant: str) -> None:
        self._store = PostgresStore(pair.either, tenant)

    def __enter__(self) -> PostgresStore:
        return self._store

    def __exit__(self, *_: object) -> None:
        self._store.close()
