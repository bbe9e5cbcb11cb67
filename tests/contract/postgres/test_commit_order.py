"""The change log is in commit order, and taking from a queue never blocks."""

from __future__ import annotations

import threading

import pytest

from support.stores import add, memory
from support.waiting import ended
from trivet.errors import InvalidInput, StoreError
from trivet.store.postgres import PostgresStore, Server
from trivet.store.relational.changes import Changes


def test_follower_misses_no_change_of_many_writers(server: Server) -> None:
    """With a plain sequence a later number may commit first.

    A reader would miss the earlier one.
    """
    store = PostgresStore(server)
    writers = [threading.Thread(target=write_some, args=(PostgresStore(server),)) for _ in range(4)]
    changes = Changes(store._database)
    followed = [changes.last()]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        new = changes.since(followed[-1])
        assert new is not None, "the numbers have a gap"
        followed.extend(sequence for sequence, _ in new)
    followed.extend(sequence for sequence, _ in changes.since(followed[-1]) or ())
    assert followed == list(range(4 * 25 + 1))
    assert len(list(store.memories.everything())) == 4 * 25


def write_some(store: PostgresStore) -> None:
    for _ in range(25):
        add(store, memory("relay"))


def test_rolled_back_write_leaves_no_gap(store: PostgresStore) -> None:
    changes = Changes(store._database)
    start = changes.last()

    def fails() -> None:
        with store._database.write():
            add(store, memory("relay"))
            raise KeyError("no")

    with pytest.raises(KeyError):
        fails()
    add(store, memory("door"))
    assert [sequence for sequence, _ in changes.since(start) or ()] == [start + 1]


def test_uncommitted_lease_blocks_nobody(server: Server) -> None:
    ours, theirs = PostgresStore(server), PostgresStore(server)
    add(ours, *(memory(f"number {number}") for number in range(4)))
    model = ours.vectors.adopt("tiny", "a", 2)
    taken: list[int] = []
    with ours._database.take():
        first = ours.jobs.lease(model, 2, 60)  # not committed yet
        other = threading.Thread(
            target=lambda: taken.extend(job.key for job in theirs.jobs.lease(model, 4, 60))
        )
        other.start()
        ended(other)
    assert len(first) == len(taken) == 2
    assert not {job.key for job in first} & set(taken)


def test_write_lock_timeout_is_reported(url: str) -> None:
    server = Server(url, patience=0.3)
    ours, theirs = PostgresStore(server), PostgresStore(server)
    caught: list[str] = []

    def write() -> None:
        try:
            add(theirs, memory("relay"))
        except StoreError as error:
            caught.append(str(error))

    with ours._database.write():
        other = threading.Thread(target=write)
        other.start()
        ended(other)
    assert "Nothing was written; try again" in caught[0]
    server.close()


@pytest.mark.parametrize("tenant", ["", "x" * 201, "a\x00b"])
def test_tenant_needs_a_name(server: Server, tenant: str) -> None:
    with pytest.raises(InvalidInput, match="tenant"):
        PostgresStore(server, tenant)


def test_tenant_may_have_any_name(server: Server) -> None:
    store = PostgresStore(server, 'O\'Hara %s "x" 数据')
    add(store, memory("relay"))
    store.vectors.build_index(store.vectors.adopt("tiny", "a", 2))
    assert store.memories.stats().memories == {"active": 1}
