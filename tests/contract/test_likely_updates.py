"""Which memory seems to update which: kept while both are as they were, told to whoever may read both."""

from __future__ import annotations

import msgspec

from support.stores import add, memory, replace
from trivet.store.relational.store import RelationalStore as Store

NONE = ()


def known(store: Store, id: str) -> list[tuple[str, float]]:
    return [(row.newer, row.probability) for row in store.likely_updates.updates_of([id])]


def test_what_is_written_waits_until_it_is_compared(store: Store) -> None:
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


def test_with_a_model_only_what_it_has_embedded_is_compared(store: Store) -> None:
    model = store.vectors.adopt("words", "words", 4)
    add(store, memory("Not embedded."))
    assert store.likely_updates.waiting(model, 10) == NONE
    assert store.vectors.of_memory(model, store.likely_updates.waiting(None, 1)[0].key) is None


def test_an_edit_of_either_drops_it_and_asks_again(store: Store) -> None:
    old, new = memory("Old."), memory("New.")
    add(store, old, new)
    store.likely_updates.finish(new, [(new, old, 0.8)])
    edited = replace(store, msgspec.structs.replace(old, content="Older."))
    assert known(store, old.id) == []
    store.likely_updates.finish(new, [(new, old, 0.8)])  # compared with the words that were
    assert known(store, old.id) == []
    store.likely_updates.finish(new, [(new, edited, 0.6)])
    assert known(store, old.id) == [(new.id, 0.6)]


def test_it_goes_with_its_memory_and_is_told_to_its_readers_alone(store: Store) -> None:
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
