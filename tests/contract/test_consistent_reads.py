"""Within a moment, a store knows everything acknowledged before it and ignores later changes."""

from __future__ import annotations

import threading
from contextvars import copy_context

import msgspec

from support.stores import Open, add, embed, found, memory, near, replace
from support.waiting import ended
from trivet.common.clock import moment
from trivet.store.relational.store import RelationalStore as Store
from trivet.types import Filter


def test_earlier_writes_are_seen(open_store: Open) -> None:
    ours, theirs = open_store(), open_store()
    for store in (ours, theirs, ours):
        one = memory("relay")
        add(store, one)
        with ours.moment():
            assert one.id in found(ours, "relay")
            assert ours.memories.visible_count(Filter()) == len(found(ours, "relay"))


def test_later_changes_are_not_checked(open_store: Open) -> None:
    ours, theirs = open_store(), open_store()
    first, second = memory("relay"), memory("relay")
    add(ours, first)
    with ours.moment():
        assert found(ours, "relay") == [first.id]
        add(theirs, second)
        assert found(ours, "relay") == [first.id]
        with ours.moment():
            assert found(ours, "relay") == [first.id], "a nested moment is the same moment"
    assert set(found(ours, "relay")) == {first.id, second.id}


def test_other_callers_see_what_a_moment_does_not(open_store: Open) -> None:
    ours, theirs = open_store(), open_store()
    first, second = memory("relay"), memory("relay door")
    add(ours, first)
    learned: list[set[str]] = []
    with ours.moment():
        assert found(ours, "relay") == [first.id]
        add(theirs, second)
        other = threading.Thread(target=lambda: learned.append(set(found(ours, "relay"))))
        other.start()
        ended(other)
        for words in ("relay", "door"):
            found(ours, words)
    assert learned == [{first.id, second.id}]
    assert found(ours, "door") == [second.id], (
        "a cache used within an older moment is current after it"
    )


def test_copied_context_keeps_the_moment(open_store: Open) -> None:
    """The legs of a recall run in threads with a copied context."""
    ours, theirs = open_store(), open_store()
    first = memory("relay")
    add(ours, first)
    answers: list[list[str]] = []
    with ours.moment():
        assert found(ours, "relay") == [first.id]
        add(theirs, memory("relay"))
        leg = threading.Thread(
            target=copy_context().run, args=(lambda: answers.append(found(ours, "relay")),)
        )
        leg.start()
        ended(leg)
    assert answers == [[first.id]]


def test_next_moment_sees_new_models_and_vectors(open_store: Open) -> None:
    ours, theirs = open_store(), open_store()
    one = memory("relay")
    add(ours, one)
    assert ours.vectors.models() == ()
    model = theirs.vectors.adopt("tiny", "a", 2)
    assert ours.vectors.models() == (model,)
    embed(theirs, model, {"relay": (1, 0)})
    with ours.moment():
        assert near(ours, model, (1, 0)) == [one.id]
    theirs.vectors.remove(model)
    assert ours.vectors.models() == ()


def test_validity_times_are_followed(open_store: Open) -> None:
    ours, theirs = open_store(), open_store()
    one = memory("relay")
    add(ours, one)
    assert found(ours, "relay") == [one.id]
    past = moment("2020-01-01")
    ended = replace(theirs, msgspec.structs.replace(one, valid_to=past))
    assert found(ours, "relay") == []
    begins_later = replace(
        theirs, msgspec.structs.replace(ended, valid_to=None, valid_from=moment("2999-01-01"))
    )
    assert found(ours, "relay") == []
    replace(theirs, msgspec.structs.replace(begins_later, valid_from=past))
    assert found(ours, "relay") == [one.id]


def test_store_that_missed_the_log_reloads(store: Store, open_store: Open) -> None:
    other = open_store()
    one = memory("relay")
    add(store, one)
    assert found(store, "relay") == [one.id]
    add(other, *(memory(f"relay {number}") for number in range(1_500)))
    assert len(found(store, "relay", depth=10_000)) == 1_501


def test_reused_id_is_another_memory(store: Store) -> None:
    first = memory("relay")
    add(store, first)
    assert found(store, "relay") == [first.id]
    store.memories.purge(first.id)
    second = memory("relay door", id=first.id)
    add(store, second)
    assert found(store, "door") == [first.id]
    ids = store.graph._ids
    (key,) = ids.keys([first.id]).values()
    assert ids.of([key]) == {key: first.id}
    assert ids.of([key - 1]) == {key - 1: first.id}
    assert ids.keys([first.id]) == {first.id: key}
