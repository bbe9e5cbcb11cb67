"""Each reading is leased to one reader at a time, never lost, and never stores outdated text."""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
import pytest

from support.stores import Open, add, memory, replace
from support.waiting import ended
from trivet.memory.worker.extraction import UNREADABLE_RETRY_SECONDS
from trivet.memory.worker.triples import LEASE_SECONDS, MAX_RETRY_SECONDS
from trivet.store.relational.index.extraction_queue import LONGEST_WAIT_SECONDS
from trivet.store.relational.store import RelationalStore as Store

from .graphs import assert_as_if_new, counts, finish, held, read_all


def test_leased_reading_is_not_leased_again(open_store: Open) -> None:
    ours, theirs = open_store(), open_store()
    add(ours, memory("one"), memory("two"), memory("three"))
    first, second = ours.graph.lease("rules", 2, 60), theirs.graph.lease("rules", 2, 60)
    assert (len(first), len(second)) == (2, 1)
    assert not {one.key for one in first} & {one.key for one in second}
    assert ours.graph.lease("rules", 2, 60) == ()
    assert ours.graph.backlog("rules").waiting == 3
    assert ours.graph.lease("triples", 2, 60) == (), "each reader has its own queue"


def test_concurrent_workers_take_each_reading_once(open_store: Open) -> None:
    stores = [open_store() for _ in range(4)]
    add(stores[0], *(memory(f"number {number}") for number in range(60)))
    taken: list[int] = []
    together = threading.Barrier(len(stores), timeout=60)

    def take(store: Store) -> None:
        together.wait()
        while readings := store.graph.lease("rules", 7, 60):
            taken.extend(one.key for one in readings)

    threads = [threading.Thread(target=take, args=(store,)) for store in stores]
    for thread in threads:
        thread.start()
    for thread in threads:
        ended(thread)
    assert len(taken) == len(set(taken)) == 60


def test_expired_or_returned_lease_is_due_again(store: Store) -> None:
    add(store, memory("relay"))
    assert len(store.graph.lease("rules", 10, 0)) == 1
    readings = store.graph.lease("rules", 10, 60)
    assert len(readings) == 1
    assert store.graph.lease("rules", 10, 60) == ()
    store.graph.release("rules", readings)
    (again,) = store.graph.lease("rules", 10, 60)
    assert again.attempts == 0
    assert store.upkeep.rebuild_graph() == 1
    assert len(store.graph.lease("rules", 10, 60)) == 1


def test_failed_reading_waits_and_is_counted(store: Store) -> None:
    add(store, memory("relay"), memory("door"))
    first, second = store.graph.lease("rules", 10, 60)
    store.graph.fail("rules", [first], "the model is down", 300.0)
    backlog = store.graph.backlog("rules")
    assert (backlog.waiting, backlog.failing, backlog.last_error) == (2, 1, "the model is down")
    store.graph.release("rules", [second])
    assert [one.key for one in store.graph.lease("rules", 10, 60)] == [second.key]
    store.graph.fail("rules", [first], "again", 0.0)
    (again,) = store.graph.lease("rules", 10, 60)
    assert (again.key, again.attempts) == (first.key, 2)


def test_reading_of_an_older_revision_is_dropped(store: Store, tmp_path: Path) -> None:
    one = memory("we met Clara at Acme")
    add(store, one)
    stale = store.graph.lease("rules", 10, 60)
    replace(store, msgspec.structs.replace(one, content="we met Emil in Berlin"))
    finish(store, stale)
    assert (counts(store), held(store)) == ((0, 0), {})
    store.graph.fail("rules", stale, "a failure of the past", 300.0)
    assert store.graph.backlog("rules").failing == 0
    assert read_all(store) == 1
    finish(store, stale)
    assert held(store) == {"emil": 1, "berlin": 1}
    assert_as_if_new(store, tmp_path / "new")


@pytest.mark.parametrize("end", ["forgotten", "purged", "made sensitive"])
def test_reading_of_a_removed_memory_is_dropped(store: Store, end: str) -> None:
    one = memory("we met Clara at Acme")
    add(store, one)
    stale = store.graph.lease("rules", 10, 60)
    if end == "purged":
        store.memories.purge(one.id)
    else:
        change = {"state": "deleted"} if end == "forgotten" else {"sensitive": True}
        replace(store, msgspec.structs.replace(one, **change))
    finish(store, stale)
    assert counts(store) == (0, 0)
    assert store.graph.backlog("rules").waiting == 0
    assert all(finding.ok for finding in store.upkeep.findings())


def test_finishing_twice_stores_once(store: Store) -> None:
    add(store, memory("we met Clara at Acme"))
    readings = store.graph.lease("rules", 10, 60)
    finish(store, readings)
    finish(store, readings)
    assert counts(store) == (2, 2)


def test_delays_from_a_fast_clock_fall_due(store: Store) -> None:
    add(store, memory("relay"))
    decade = 10 * 365 * 86_400.0
    (reading,) = store.graph.lease("rules", 10, decade)
    assert store.graph.lease("rules", 10, 60) == (reading,)
    store.graph.fail("rules", [reading], "a failure", decade)
    assert [one.key for one in store.graph.lease("rules", 10, 60)] == [reading.key]
    assert store.graph.lease("rules", 10, 60) == ()
    assert (
        max(UNREADABLE_RETRY_SECONDS, LEASE_SECONDS, 1.2 * MAX_RETRY_SECONDS) < LONGEST_WAIT_SECONDS
    )


def test_more_than_a_few_is_known_without_counting_all(store: Store) -> None:
    add(store, memory("one"), memory("two"))
    assert [store.graph.has_more_than("rules", few) for few in (1, 2)] == [True, False]
    assert not store.graph.has_more_than("triples", 0)
