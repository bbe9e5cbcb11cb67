"""The change feed for laptops is numbered in commit order, however a memory was changed."""

from __future__ import annotations

import msgspec
import pytest

from support.stores import Open, add, document, link, memory, replace
from trivet.common.clock import clock_fixed_at
from trivet.errors import Conflict
from trivet.store.records import Entry
from trivet.store.relational.store import RelationalStore as Store
from trivet.store.relational.tables.sync_bundles import read_bundles
from trivet.store.relational.tables.sync_feed import FeedEvent
from trivet.types import Memory


def events(store: Store, viewer: str, after: int = 0) -> list[FeedEvent]:
    with store.feed.transaction() as connection:
        store.feed.number(connection)
    with store.feed.snapshot() as connection:
        return store.feed.events(connection, viewer, after, 100)[0]


def numbered(store: Store) -> int:
    with store.feed.transaction() as connection:
        return store.feed.number(connection).seq


def ana_memory(content: str, **more: object) -> Memory:
    return memory(content, owner="ana", **more)  # type: ignore[arg-type]


def test_store_without_followers_records_nothing(store: Store) -> None:
    one = memory("gone")
    add(store, one)
    store.memories.purge(one.id)
    assert store.feed.state() is None
    with store.feed.snapshot() as connection:
        assert (
            connection.execute(connection.sql("sync")["tombstone"], {"id": one.id}).fetchone()
            is None
        )


def test_changes_are_numbered_and_derived_ones_are_not(store: Store) -> None:
    one, two = ana_memory("one"), ana_memory("two")
    add(store, one, two)
    first = numbered(store)
    replace(store, store.memories.get(one.id))
    assert numbered(store) == first + 1
    store.links.add(link(one, "see-also", two))  # affects both ends
    assert numbered(store) == first + 3
    model = store.vectors.adopt("tiny", "a", 2)
    store.jobs.lease(model, 10, 60)
    store.upkeep.rebuild_lexical(iter([(one, document(one)), (two, document(two))]))
    assert numbered(store) == first + 3
    assert [event.seq for event in events(store, "ana")] == [first + 2, first + 3]


def test_lost_access_is_reported_once(store: Store) -> None:
    shared, tagged = ana_memory("shared"), ana_memory("tagged", tags=("team",))
    add(store, shared, tagged)
    ana = store.seen_by("ana")
    ana.shares.share_memory(shared.id, "bo", "read")
    ana.shares.share_tag("team", "bo", "write")
    known = numbered(store)
    assert len(events(store, "bo")) == 2
    assert events(store, "cleo") == []
    ana.shares.unshare_memory(shared.id, "bo")
    ana.shares.unshare_tag("team", "bo")
    lost = events(store, "bo", known)
    assert {event.id for event in lost} == {shared.id, tagged.id}
    assert all(event.purged is None for event in lost)
    with store.feed.snapshot() as connection:
        affected_users = store.feed.affected_users(connection, known)
    assert affected_users is not None
    assert affected_users.keys() == {"ana", "bo"}


def test_forgetting_or_hiding_removes_a_memory_for_its_readers(store: Store) -> None:
    forgotten, hidden = ana_memory("forgotten"), ana_memory("hidden")
    add(store, forgotten, hidden)
    for one in (forgotten, hidden):
        store.seen_by("ana").shares.share_memory(one.id, "bo", "read")
    known = numbered(store)
    replace(
        store, msgspec.structs.replace(store.memories.get(forgotten.id), state="deleted"), "forget"
    )
    replace(store, msgspec.structs.replace(store.memories.get(hidden.id), sensitive=True))
    assert {event.id for event in events(store, "bo", known)} == {forgotten.id, hidden.id}


def test_purge_is_reported_permanently_to_former_readers(store: Store) -> None:
    one = ana_memory("words that go")
    add(store, one)
    store.seen_by("ana").shares.share_memory(one.id, "bo", "read")
    known = numbered(store)
    store.memories.purge(one.id)
    for user in ("ana", "bo"):
        [event] = events(store, user, known)
        assert (event.id, event.purged) == (one.id, "ana")
    assert events(store, "cleo", known) == []


def test_old_notices_expire_but_purges_do_not(store: Store) -> None:
    taken, purged = ana_memory("taken"), ana_memory("purged")
    add(store, taken, purged)
    ana = store.seen_by("ana")
    for one in (taken, purged):
        ana.shares.share_memory(one.id, "bo", "read")
    known = numbered(store)
    ana.shares.unshare_memory(taken.id, "bo")
    store.memories.purge(purged.id)
    assert len(events(store, "bo", known)) == 2
    with clock_fixed_at("2100-01-01"):
        add(store, ana_memory("one more"))
        [left] = events(store, "bo", known)
        assert left.purged == "ana"
        state = store.feed.state()
    assert state is not None
    assert state.horizon == known + 2


def test_restored_store_has_new_markers(open_store: Open) -> None:
    store = open_store()
    add(store, ana_memory("one"))
    with store.feed.transaction() as connection:
        state = store.feed.number(connection)
        assert store.feed.knows(connection, state.top, state.mark)
        assert not store.feed.knows(connection, state.top, "of another life")
        assert not store.feed.knows(connection, state.top + 1, state.mark)
        assert store.feed.begin(connection).past == (state.epoch,)


def test_changes_are_numbered_where_the_log_was_trimmed(store: Store) -> None:
    add(store, ana_memory("one"))
    known = numbered(store)
    store.memories.add_many(
        [Entry(one, document(one)) for one in (ana_memory("two"), ana_memory("three"))]
    )
    with store.feed.transaction() as connection:
        connection.execute(
            "DELETE FROM change WHERE sequence IN (SELECT min(sequence) FROM change)"
        )
        connection.execute(
            "DELETE FROM change WHERE sequence IN (SELECT min(sequence) FROM change)"
        )
    assert numbered(store) == known + 2


def test_purged_memory_stays_gone_with_followers(store: Store) -> None:
    one = ana_memory("words that go")
    add(store, one)
    numbered(store)
    store.memories.purge(one.id)
    with pytest.raises(Conflict, match="was purged"):
        add(store, one)


def test_first_numbering_runs_in_batches_and_misses_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trivet.store.relational.tables.sync_feed.FIRST_NUMBERING_BATCH", 2)
    memories = [ana_memory(f"number {number}") for number in range(5)]
    add(store, *memories)
    seen = []
    for one in memories[:3]:  # each one changes while the numbering runs
        with store.feed.transaction() as connection:
            seen.append(store.feed.number(connection).unfinished)
        replace(store, store.memories.get(one.id))
    assert seen == [True, True, False]
    numbered(store)
    with store.feed.snapshot() as connection:
        keys = [event.key for event in store.feed.events(connection, "ana", 0, 100)[0]]
        bundles = read_bundles(connection, keys)
    assert {bundle.id: len(bundle.trunk) for bundle in bundles.values()} == {
        one.id: 2 if one in memories[:3] else 1 for one in memories
    }
    assert [event.seq for event in events(store, "ana")] == sorted(
        event.seq for event in events(store, "ana")
    )
