"""Usage counts what was shown and how users judged it."""

from __future__ import annotations

import pytest

from support.stores import Open, add, memory
from trivet.common.clock import moment
from trivet.common.ids import new_id
from trivet.errors import NotFound
from trivet.store.relational.store import RelationalStore as Store


def test_counts_add_up_across_processes(open_store: Open) -> None:
    store, other = open_store(), open_store()
    one, two = memory("One."), memory("Two.")
    add(store, one, two)
    assert store.usage.since() is None
    store.usage.note({one.id: 2})
    other.usage.note({one.id: 1, two.id: 1, new_id(): 5})
    found = store.usage.of(one.id)
    assert (found.shown, store.usage.of(two.id).shown) == (3, 1)
    assert found.last_shown is not None
    assert found.last_shown >= moment(str(store.usage.since()))
    assert store.usage.shown() == {one.id, two.id}


def test_memory_that_was_never_shown(store: Store) -> None:
    one = memory("One.")
    add(store, one)
    assert (store.usage.of(one.id).shown, store.usage.of(one.id).last_shown) == (0, None)
    with pytest.raises(NotFound):
        store.usage.of(new_id())


def test_last_verdict_on_a_query_counts(store: Store) -> None:
    one = memory("One.")
    add(store, one)
    store.usage.judge(one.id, "which one?", "useful")
    store.usage.judge(one.id, "which one?", "not-useful")
    store.usage.judge(one.id, "", "useful")
    assert (store.usage.of(one.id).useful, store.usage.of(one.id).not_useful) == (1, 1)
    assert [(judged.query, judged.verdict) for judged in store.usage.judged()] == [
        ("which one?", "not-useful")
    ]


def test_users_see_only_their_own_verdicts(store: Store) -> None:
    for user in ("ana", "bo"):
        store.accounts.add_user(user, "writer")
    one = memory("One.", owner="ana")
    add(store.seen_by("ana"), one)
    store.shares.share_memory(one.id, "bo", "read")
    store.seen_by("ana").usage.judge(one.id, "which one?", "useful")
    store.seen_by("bo").usage.judge(one.id, "which?", "not-useful")
    ana, bo = (store.seen_by(user).usage.of(one.id) for user in ("ana", "bo"))
    assert ((ana.useful, ana.not_useful), (bo.useful, bo.not_useful)) == ((1, 0), (0, 1))


def test_counts_are_deleted_with_their_memory(store: Store) -> None:
    one = memory("One.")
    add(store, one)
    store.usage.note({one.id: 1})
    store.usage.judge(one.id, "which one?", "useful")
    store.memories.purge(one.id)
    assert (store.usage.shown(), store.usage.judged()) == (frozenset(), ())


def test_all_counts_cover_what_was_shown_or_judged(store: Store) -> None:
    shown, spoken, silent = memory("one"), memory("two"), memory("three")
    add(store, shown, spoken, silent)
    store.usage.note({shown.id: 3})
    for actor, verdict in (("ana", "useful"), ("bo", "not-useful")):
        store.accounts.add_user(actor, "writer")
        store.seen_by(actor).usage.judge(spoken.id, "q", verdict)  # type: ignore[arg-type]
    store.usage.judge(shown.id, "q", "not-useful")
    found = {one.id: (one.shown, one.useful, one.not_useful) for one in store.usage.all()}
    assert found == {shown.id: (3, 0, 1), spoken.id: (0, 1, 1)}
