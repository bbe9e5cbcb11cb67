"""The visibility predicate gives the same result in listings and in both indexes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from support.stores import Open, add, embed, found, memory, near, replace
from trivet.store.records import Model
from trivet.store.relational.store import RelationalStore as Store
from trivet.types import Filter, Memory, State

FAR_PAST, FAR_FUTURE = "2001-01-01T00:00:00.000000Z", "2999-01-01T00:00:00.000000Z"
EVERY_STATE: tuple[State, ...] = ("active", "archived", "deleted", "superseded")

# Each filter with a memory that passes it and one that does not. Without a filter both would pass.
PAIRS: dict[str, tuple[Filter, Memory, Memory]] = {
    "scope": (Filter(scope="team"), memory("relay", scope="team"), memory("relay", scope="other")),
    "scope below": (
        Filter(scope="team"),
        memory("relay", scope="team/a/b"),
        memory("relay", scope="teamster"),
    ),
    "scope above": (
        Filter(scope="team/a"),
        memory("relay", scope="team/a"),
        memory("relay", scope="team"),
    ),
    "scope like": (
        Filter(scope="te_m"),
        memory("relay", scope="te_m/a"),
        memory("relay", scope="team/a"),
    ),
    "category": (
        Filter(categories=("code", "events")),
        memory("relay", category="code"),
        memory("relay", category="facts"),
    ),
    "tag": (Filter(tags=("x",)), memory("relay", tags=("x", "y")), memory("relay", tags=("y",))),
    "all tags": (
        Filter(tags=("x", "y")),
        memory("relay", tags=("x", "y")),
        memory("relay", tags=("x",)),
    ),
    "state": (Filter(states=("archived",)), memory("relay", state="archived"), memory("relay")),
    "usual states": (Filter(), memory("relay"), memory("relay", state="archived")),
    "source": (
        Filter(source="a/b.py"),
        memory("relay", source="a/b.py"),
        memory("relay", source="a/b.py.bak"),
    ),
    "source below": (
        Filter(source="a/"),
        memory("relay", source="a/b.py"),
        memory("relay", source="ab.py"),
    ),
    "no source": (Filter(source="a/b.py"), memory("relay", source="a/b.py"), memory("relay")),
    "created after": (
        Filter(created_after="2024-05-01T00:00:00.000000Z"),
        memory("relay", created_at="2024-05-01T00:00:00.000000Z"),
        memory("relay", created_at="2024-04-30T23:59:59.999999Z"),
    ),
    "created before": (
        Filter(created_before="2024-05-01T00:00:00.000000Z"),
        memory("relay", created_at="2024-04-30T23:59:59.999999Z"),
        memory("relay", created_at="2024-05-01T00:00:00.000000Z"),
    ),
    "as of, not yet": (
        Filter(as_of="2024-05-01T00:00:00.000000Z"),
        memory("relay", valid_from="2024-05-01T00:00:00.000000Z"),
        memory("relay", valid_from="2024-05-02T00:00:00.000000Z"),
    ),
    "as of, no longer": (
        Filter(as_of="2024-05-01T00:00:00.000000Z"),
        memory("relay", valid_to="2024-05-02T00:00:00.000000Z"),
        memory("relay", valid_to="2024-05-01T00:00:00.000000Z"),
    ),
    "as of, not known then": (
        Filter(as_of="2024-05-01T00:00:00.000000Z"),
        memory("relay", created_at="2024-04-01T00:00:00.000000Z"),
        memory("relay", created_at="2024-06-01T00:00:00.000000Z"),
    ),
    "two together": (
        Filter(scope="team", tags=("x",)),
        memory("relay", scope="team", tags=("x",)),
        memory("relay", scope="team"),
    ),
    "everything together": (
        Filter(
            scope="team",
            categories=("code",),
            tags=("x",),
            states=("archived",),
            source="a/",
            created_after=FAR_PAST,
            created_before="2025-01-01T00:00:00.000000Z",
            as_of="2024-06-01T00:00:00.000000Z",
        ),
        memory(
            "relay", scope="team/a", category="code", tags=("x",), state="archived", source="a/b"
        ),
        memory("relay", scope="team/a", category="code", tags=("x",), state="active", source="a/b"),
    ),
}

Search = Callable[[Store, Model, Filter], list[str]]
READS: dict[str, Search] = {
    "lexical": lambda store, model, filter: found(store, "relay", filter),
    "vectors": lambda store, model, filter: near(store, model, (1, 0), filter),
    "page": lambda store, model, filter: [
        one.id for one in store.memories.page(filter, "recency", 10, 0).memories
    ],
}


@pytest.mark.parametrize("name", PAIRS)
def test_filter_applies_inside_every_read(store: Store, name: str) -> None:
    filter, passes, fails = PAIRS[name]
    add(store, passes, fails)
    model = store.vectors.adopt("tiny", "none", 2)
    embed(store, model, {"relay": (1, 0)})
    for read, search in READS.items():
        assert search(store, model, filter) == [passes.id], read
    assert store.memories.is_visible(passes.id, filter)
    assert not store.memories.is_visible(fails.id, filter)
    assert store.memories.visible_count(filter) == 1


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize(("valid_from", "valid_to"), [(None, FAR_PAST), (FAR_FUTURE, None)])
def test_without_a_time_only_current_memories_are_seen(
    store: Store, read: str, valid_from: str | None, valid_to: str | None
) -> None:
    true_now = memory("relay", valid_from=FAR_PAST, valid_to=FAR_FUTURE)
    not_now = memory("relay", valid_from=valid_from, valid_to=valid_to)
    add(store, true_now, not_now)
    model = store.vectors.adopt("tiny", "none", 2)
    embed(store, model, {"relay": (1, 0)})
    assert READS[read](store, model, Filter()) == [true_now.id]
    assert store.memories.is_visible(true_now.id, Filter())
    assert not store.memories.is_visible(not_now.id, Filter())


@pytest.mark.parametrize("read", ["lexical", "vectors"])
def test_selective_filter_still_fills_the_answer(store: Store, read: str) -> None:
    """The rare memories score worst of 5,000, so filtering after the search would find none."""
    common = [memory("relay relay relay port") for _ in range(4_980)]
    rare = [
        memory("relay and a good many other words that make it score worse", tags=("rare",))
        for _ in range(20)
    ]
    add(store, *common[:2_500], *rare, *common[2_500:])
    model = store.vectors.adopt("tiny", "none", 2)
    embed(store, model, {common[0].content: (1, 0), rare[0].content: (0, 1)})
    filter = Filter(tags=("rare",))
    by_words, by_vector = (
        found(store, "relay", filter, depth=10),
        near(store, model, (1, 0), filter, depth=10),
    )
    ids = by_words if read == "lexical" else by_vector
    assert len(set(ids)) == 10
    assert set(ids) <= {one.id for one in rare}


@pytest.mark.parametrize("read", READS)
def test_cached_filter_follows_changes(open_store: Open, read: str) -> None:
    """The same filter is reused while another process moves a memory in and out of it."""
    ours, theirs = open_store(), open_store()
    one = memory("relay", tags=("x",))
    add(ours, one)
    model = ours.vectors.adopt("tiny", "none", 2)
    embed(ours, model, {"relay": (1, 0)})
    filter = Filter(tags=("x",))
    assert READS[read](ours, model, filter) == [one.id]
    two = replace(theirs, msgspec.structs.replace(one, tags=()))
    embed(theirs, model, {"relay": (1, 0)})
    assert READS[read](ours, model, filter) == []
    replace(theirs, msgspec.structs.replace(two, tags=("x",)))
    embed(theirs, model, {"relay": (1, 0)})
    assert READS[read](ours, model, filter) == [one.id]


@pytest.mark.parametrize("read", READS)
def test_many_filters_do_not_mix(store: Store, read: str) -> None:
    memories = [memory("relay", scope=f"scope{number}") for number in range(100)]
    add(store, *memories)
    model = store.vectors.adopt("tiny", "none", 2)
    embed(store, model, {"relay": (1, 0)})
    for _ in range(2):
        for one in memories:
            assert READS[read](store, model, Filter(scope=one.scope)) == [one.id]


def test_memories_by_source_tell_whether_the_filter_shows_them(store: Store) -> None:
    shown = memory("relay", source="notes/a.md", scope="team")
    hidden = memory("relay", source="notes/a.md", scope="other", sensitive=True)
    named = memory("relay", scope="team")
    gone = memory("relay", source="notes/b.md", scope="team")
    add(store, shown, hidden, named, gone, memory("relay", source="notes/a.md.bak"))
    replace(store, msgspec.structs.replace(gone, state="deleted"), "forget")
    told = store.memories.of_sources(
        ["notes/a.md", "notes/b.md", named.id, "notes/none.md"], Filter(scope="team")
    )
    by_id = {one.id: (one.source, one.shown, one.sensitive, one.deleted) for one in told}
    assert by_id == {
        shown.id: ("notes/a.md", True, False, False),
        hidden.id: ("notes/a.md", False, True, False),
        named.id: (None, True, False, False),
        gone.id: ("notes/b.md", False, False, True),
    }


def test_memories_of_others_are_not_found_by_source(store: Store) -> None:
    mine, theirs = (memory("relay", source="notes/a.md", owner=owner) for owner in ("ana", "ben"))
    add(store, mine, theirs)
    told = store.seen_by("ana").memories.of_sources(["notes/a.md", theirs.id], Filter(viewer="ana"))
    assert [one.id for one in told] == [mine.id]
