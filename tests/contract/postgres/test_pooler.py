"""The store works behind a transaction pooler that gives each transaction another connection."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from contract.graphs import read_all
from support.pooler import PROGRAM, Pooler
from support.postgres_server import PostgresServer
from support.stores import add, embed, found, memory, near
from support.waiting import in_threads
from trivet import Trivet
from trivet.errors import StoreError
from trivet.store.postgres import PostgresStore, Server

pytestmark = pytest.mark.skipif(
    PROGRAM is None, reason="pgbouncer is not installed (apt-get install pgbouncer)"
)


@pytest.fixture(scope="module")
def pooler(postgres: PostgresServer) -> Iterator[Pooler]:
    made = Pooler(postgres)
    yield made
    made.remove()


def test_pooler_is_detected_and_nothing_is_prepared(pooler: Pooler, url: str) -> None:
    server = Server(pooler.url(url))
    store = PostgresStore(server)
    for _ in range(10):
        store.memories.stats()
    with server.connection() as connection:
        assert connection.execute("SELECT 1 FROM pg_prepared_statements").fetchall() == []
    server.close()


def test_tenants_are_separate_on_shared_connections(pooler: Pooler, url: str) -> None:
    """Two connections serve six threads of three tenants that read and write concurrently."""
    server = Server(pooler.url(url))
    stores = [PostgresStore(server, f"tenant-{number % 3}") for number in range(6)]

    def work(number: int) -> None:
        store, word = stores[number], ("apple", "pear", "plum")[number % 3]
        for _ in range(15):
            add(store, memory(f"relay {word}"))
            with store.moment():
                seen = {store.memories.get(id).content for id in found(store, "relay")}
            assert seen == {f"relay {word}"}

    in_threads(6, work)
    assert [store.memories.stats().memories for store in stores[:3]] == [{"active": 30}] * 3
    server.close()


def test_all_operations_work(pooler: Pooler, url: str) -> None:
    store = PostgresStore(pooler.url(url))
    one, two = memory("we met Clara at Acme"), memory("the office of Acme")
    add(store, one, two)
    model = store.vectors.adopt("tiny", "a", 2)
    embed(store, model, {one.content: (1, 0), two.content: (0, 1)})
    read_all(store)
    assert set(found(store, "acme")) == {one.id, two.id}
    assert near(store, model, (1, 0)) == [one.id, two.id]
    store.memories.purge(one.id)
    assert all(finding.ok for finding in store.upkeep.findings())
    store.close()


@pytest.mark.usefixtures("vector_search")
def test_vector_index_is_built_and_used(pooler: Pooler, url: str) -> None:
    store = PostgresStore(pooler.url(url))
    one, two = memory("we met Clara at Acme"), memory("the office of Acme")
    add(store, one, two)
    model = store.vectors.adopt("tiny", "a", 2)
    embed(store, model, {one.content: (1, 0), two.content: (0, 1)})
    store.vectors.cached_up_to = store.vectors.exact_up_to = store.vectors.named_up_to = 0
    store.vectors.build_index(model)
    assert near(store, model, (1, 0)) == [one.id, two.id]
    store.close()


def test_facade_works(pooler: Pooler, url: str) -> None:
    with Trivet.open(pooler.url(url), embedder="none") as trivet:
        for word in ("apple", "pear", "plum"):
            trivet.remember(f"{word} relay, delivered")
        for word in ("apple", "pear", "plum"):
            assert trivet.recall(f"the {word} relay").hits[0].content == f"{word} relay, delivered"


def test_forced_prepared_statements_are_a_clear_error(pooler: Pooler, url: str) -> None:
    """With two connections, a statement prepared on one is executed on the other."""
    server = Server(pooler.url(url), pooler="no", patience=1.0)
    stores = [PostgresStore(server, "ann") for _ in range(8)]
    told: list[str] = []

    def work(number: int) -> None:
        try:
            for _ in range(20):
                stores[number].memories.stats()
        except StoreError as error:
            told.append(str(error))

    in_threads(len(stores), work)
    assert told
    assert any("postgres_pooler" in text for text in told)
    server.close()
