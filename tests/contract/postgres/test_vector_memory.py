"""A process searches vectors in its own memory while they fit, and evicts them when they do not."""

from __future__ import annotations

import numpy as np
import pytest

from support.stores import add, embed, memory, near, unit
from trivet.store.postgres import PostgresStore, Server
from trivet.store.records import Model
from trivet.types import Filter


def filled(server: Server, tenant: str) -> tuple[PostgresStore, Model, list[str]]:
    store = PostgresStore(server, tenant)
    one, two = memory("one"), memory("two")
    add(store, one, two)
    model = store.vectors.adopt("tiny", "a", 2)
    embed(store, model, {"one": (1, 0), "two": (0, 1)})
    return store, model, [one.id, two.id]


def held(store: PostgresStore, model: Model) -> bool:
    return store.vectors._cache.bytes(model) > 0


@pytest.mark.usefixtures("vector_search")
def test_both_search_methods_agree(server: Server) -> None:
    store, model, ids = filled(server, "ann")
    assert near(store, model, (1, 0)) == ids
    assert held(store, model)
    in_memory = store.vectors.search(model, unit(3, 1), Filter(), 10)
    store.vectors.cached_up_to = 0
    in_database = store.vectors.search(model, unit(3, 1), Filter(), 10)
    assert [(one.id, one.passage) for one in in_memory] == [
        (one.id, one.passage) for one in in_database
    ]
    assert np.allclose(
        [one.score for one in in_memory], [one.score for one in in_database], atol=1e-6
    )


def test_least_recently_used_vectors_are_evicted(url: str) -> None:
    server = Server(url)
    stores = [filled(server, f"tenant-{number}") for number in range(4)]
    for store, model, ids in stores[:2]:
        assert near(store, model, (1, 0)) == ids
    server.vector_memory.bytes = 3 * stores[0][0].vectors._cache.bytes(stores[0][1])
    for store, model, ids in (stores[0], *stores[2:]):
        assert near(store, model, (1, 0)) == ids
    assert [held(store, model) for store, model, _ in stores] == [True, False, True, True]
    store, model, ids = stores[1]
    assert near(store, model, (1, 0)) == ids, "evicted vectors are read again on demand"
    store.close()
    assert not held(store, model)
    server.close()


@pytest.mark.usefixtures("vector_search")
def test_database_searches_tenants_with_too_many_vectors(url: str) -> None:
    server = Server(url, vector_bytes=1)
    store, model, ids = filled(server, "ann")
    assert near(store, model, (1, 0)) == ids
    assert not held(store, model)
    server.close()


def test_vectors_read_in_chunks_are_complete(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trivet.store.postgres.vectors.MEMORIES_AT_ONCE", 3)
    store = PostgresStore(server)
    memories = [memory(f"number {number}") for number in range(10)]
    add(store, *memories)
    model = store.vectors.adopt("tiny", "a", 2)
    embed(store, model, {one.content: (1, number) for number, one in enumerate(memories)})
    store.memories.purge(memories[4].id)
    assert near(store, model, (1, 0)) == [one.id for one in memories if one is not memories[4]]
