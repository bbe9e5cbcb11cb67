"""Likely updates last while both memories are unchanged; users who may read both see them."""

from __future__ import annotations

import msgspec

from support.stores import add, memory, replace
from trivet.store.relational.store import RelationalStore as Store

NONE = ()


def known(store: Store, id: str) -> list[tuple[str, float]]:
    return [(row.newer, row.probability) for row in store.likely_updates.updates_of([id])]


def test_new_memory_waits_for_comparison(store: Store) -> None:
    old, new, hidden = memory("Old."), memory("New."), memory("Hidden.", sensitive=True)
    add(store, old, new, hidden)
    assert [one.id for one in store.likely_updates.waiting(None, 10)] == [new.id, old.id]
    store.likely_updates.finish(new, [(new, old, 0.8)])
    assert known(store, old.id) == [(new.id, 0.8)]
    assert known(store, new.id) == []
    assert [one.id for one in store.likely_updates.waiting(None, 10)] == [old.id]
    store.likely_updates.skip(store.likely_updates.waiting(None, 10)[0])
    assert store.likely_updates.pending() == 0
    store.likely_updates.compare_all()
    assert (known(store, old.id), store.likely_updates.pending()) == ([], 2)


def test_with_a_model_only_embedded_memories_are_compared(store: Store) -> None:
    model = store.vectors.adopt("words", "words", 4)
    add(store, memory("Not embedded."))
    assert store.likely_updates.waiting(model, 10) == NONE
    assert store.vectors.of_memory(model, store.likely_updates.waiting(None, 1)[0].key) is None


def test_editing_either_memory_drops_the_pair(store: Store) -> None:
    old, new = memory("Old."), memory("New.")
    add(store, old, new)
    store.likely_updates.finish(new, [(new, old, 0.8)])
    edited = replace(store, msgspec.structs.replace(old, content="Older."))
    assert known(store, old.id) == []
    store.likely_updates.finish(new, [(new, old, 0.8)])  # compared with the old text
    assert known(store, old.id) == []
    store.likely_updates.finish(new, [(new, edited, 0.6)])
    assert known(store, old.id) == [(new.id, 0.6)]


def test_pair_ends_with_its_memory_and_is_shown_to_its_readers(store: Store) -> None:
    for user in ("ana", "bo"):
        store.accounts.add_user(user, "writer")
    old, new = memory("Old.", owner="ana"), memory("New.", owner="ana")
    add(store.seen_by("ana"), old, new)
    store.likely_updates.finish(new, [(new, old, 0.8)])
    store.shares.share_memory(old.id, "bo", "read")
    assert known(store.seen_by("ana"), old.id) == [(new.id, 0.8)]
    assert known(store.seen_by("bo"), old.id) == []
    store.memories.purge(new.id)
    assert known(store, old.id) == []
