"""In a server outage, reads wait, interrupted writes report their outcome, and all recovers."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import psycopg
import pytest

from support.postgres_server import PostgresServer
from support.stores import add, found, memory
from support.waiting import ended, grown
from trivet.errors import StoreError, UnknownFate
from trivet.store.postgres import PostgresStore, Server
from trivet.store.postgres.transactions import Transaction


@pytest.fixture
def own_server() -> Iterator[PostgresServer]:
    """A server that no other test uses while it is down."""
    server = PostgresServer()
    yield server
    server.remove()


def test_reads_and_writes_continue_after_a_restart(own_server: PostgresServer) -> None:
    store = PostgresStore(own_server.database())
    one = memory("relay")
    add(store, one)
    own_server.restart()
    assert store.memories.get(one.id) == one
    assert found(store, "relay") == [one.id]
    own_server.restart()
    two = memory("relay too")
    add(store, two)
    assert set(found(store, "relay")) == {one.id, two.id}
    store.close()


def test_interrupted_write_reports_it_and_leaves_nothing(own_server: PostgresServer) -> None:
    store = PostgresStore(own_server.database())
    one = memory("relay")

    def cut_off() -> None:
        with store._database.write():
            add(store, one)
            own_server.restart()

    with pytest.raises(StoreError, match=r"lost.*Nothing was written"):
        cut_off()
    assert found(store, "relay") == []
    add(store, one)
    assert found(store, "relay") == [one.id]
    store.close()


@pytest.mark.parametrize("done", [True, False])
def test_commit_with_a_lost_answer_is_looked_up(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    url = postgres.database()
    store, one = PostgresStore(url), memory("relay")
    commit = Transaction.commit

    def lose_the_answer(self: Transaction, tells_position: bool) -> int:
        monkeypatch.setattr(Transaction, "commit", commit)
        if done:
            commit(self, tells_position)
        self._connection.close()
        raise psycopg.OperationalError("the connection is lost")

    monkeypatch.setattr(Transaction, "commit", lose_the_answer)
    if done:
        add(store, one)
    else:
        with pytest.raises(StoreError, match="Nothing was written"):
            add(store, one)
    assert found(store, "relay") == ([one.id] if done else [])
    store.close()
    postgres.drop(url)


def test_lost_transaction_number_may_be_reused_after_a_crash(
    own_server: PostgresServer,
) -> None:
    """A transaction that was not on disk at a crash never happened, and its number is reused."""
    own_server.set("wal_writer_delay", "10s")  # nothing reaches the disk before the crash
    store = PostgresStore(own_server.database())
    lost = psycopg.OperationalError("the connection is lost")
    numbers: list[tuple[str | None, str]] = []

    def cut_off() -> None:
        with store._database.write() as transaction:
            add(store, memory("relay"))
            numbers.append((transaction.id, transaction.life))
            own_server.restart()

    with pytest.raises(StoreError, match="lost"):
        cut_off()
    [(id, life)] = numbers
    while True:
        with store._database.write() as transaction:
            add(store, memory("door"))
        assert transaction.id is not None
        assert id is not None
        if int(transaction.id) >= int(id):
            break
    assert transaction.id == id, "the number was reused, and committed"
    assert store._database._commit_outcome(id, transaction.life, lost) > 0
    with pytest.raises(UnknownFate):
        store._database._commit_outcome(id, life, lost)
    store.close()


def test_permanent_outage_is_a_clear_error(own_server: PostgresServer) -> None:
    server = Server(own_server.database(), patience=0.5)
    store = PostgresStore(server)
    own_server.stop("immediate")
    try:
        with pytest.raises(StoreError, match="lost"):
            store.memories.stats()
        with pytest.raises(StoreError, match=r"lost.*Nothing was written"):
            add(store, memory("relay"))
    finally:
        own_server.start()
    add(store, memory("relay"))
    server.close()


def test_restart_loses_no_acknowledged_write(own_server: PostgresServer) -> None:
    store = PostgresStore(own_server.database())
    acknowledged: list[str] = []
    enough = threading.Event()

    def write() -> None:
        while not enough.is_set():
            one = memory("relay")
            try:
                add(store, one)
            except StoreError:
                continue
            acknowledged.append(one.id)

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    for _ in range(3):
        grown(acknowledged, len(acknowledged) + 20)
        own_server.restart()
    enough.set()
    for writer in writers:
        ended(writer)
    assert set(acknowledged) <= {one.id for one in store.memories.everything()}
    assert set(found(store, "relay", depth=100_000)) >= set(acknowledged)
    assert all(finding.ok for finding in store.upkeep.findings())
    store.close()
