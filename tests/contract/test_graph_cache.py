"""The in-memory graph stays current after writes of any size by any process."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from support.stores import Open, add, memory, replace
from trivet.store.records import WalkSeeds
from trivet.store.sqlite.store import SqliteStore

from .graphs import EVERYTHING, HOW, reached, read_all


def test_writes_by_another_process_are_walked(open_store: Open) -> None:
    ours, theirs = open_store(), open_store()
    first, second = memory("we met Clara at Acme"), memory("so Acme it was")
    add(ours, first)
    read_all(ours)
    assert reached(theirs, first) == {}
    add(ours, second)
    read_all(ours)
    assert set(reached(theirs, first)) - {first.id} == {second.id}
    replace(theirs, msgspec.structs.replace(second, content="so it was"))
    assert reached(ours, first) == {}
    third = memory("and Clara came")
    add(theirs, third)
    read_all(theirs)
    assert set(reached(ours, first)) - {first.id} == {third.id}
    ours.memories.purge(third.id)
    assert reached(theirs, first) == {}


def test_updated_cache_equals_a_freshly_loaded_one(open_store: Open) -> None:
    ours, first = open_store(), memory("we met Clara at Acme")
    add(ours, first)
    read_all(ours)
    changed = []
    for number in range(80):
        add(ours, memory(f"Acme and Clara met Dario{number} in week{number}"))
        read_all(ours)
        reached(ours, first)
        changed.append(ours.graph._network.fresh().changed)
    assert any(later < earlier for earlier, later in pairwise(changed))  # the arrays were rebuilt
    assert reached(ours, first) == reached(open_store(), first) != {}


@pytest.fixture
def sqlite(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "memory.db")
    yield store
    store.close()


def test_bulk_change_is_applied_in_the_background(sqlite: SqliteStore) -> None:
    """A change too large for one recall is applied in a thread.

    Recalls use the old network meanwhile.
    """
    first, second = memory("we met Clara at Acme"), memory("so Acme it was")
    add(sqlite, first, second)
    read_all(sqlite)
    before = reached(sqlite, first)
    many = [memory(f"and Clara came in week{number}") for number in range(600)]
    add(sqlite, *many)
    read_all(sqlite)
    network = sqlite.graph._network
    assert sqlite.graph.behind()
    assert reached(sqlite, first)[second.id] == before[second.id]
    network.wait()
    assert not sqlite.graph.behind()
    seeds = WalkSeeds(memories={first.id: 1.0}, concepts={})
    for _ in range(3):
        network.wait()
        found = {one.id for one in sqlite.graph.walk(seeds, EVERYTHING, HOW, 1_000)}
    assert found >= {second.id}
    assert network.fresh().edges == sqlite.memories.stats().mentions
    replace(sqlite, msgspec.structs.replace(second, content="so it was"))
    assert second.id not in {one.id for one in sqlite.graph.walk(seeds, EVERYTHING, HOW, 1_000)}


def test_closing_during_a_graph_rebuild_raises_nothing(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "memory.db")
    one = memory("we met Clara")
    add(store, one)
    read_all(store)
    assert reached(store, one) == {}
    store.close()
    store.graph._network._renew()
    store.graph._network.wait()  # an error in the thread would fail this test
