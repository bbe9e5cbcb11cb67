"""Memories and their revisions are stored once and completely, and purged ones are nowhere."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from support.stores import Open, add, at_rest, document, embed, found, link, memory, near, replace
from trivet.common.ids import new_id
from trivet.errors import Conflict, NotFound
from trivet.store.records import AddResult, Entry
from trivet.store.relational.store import RelationalStore as Store
from trivet.types import Count, Filter, Memory, Revision, Sort


def test_memory_round_trips(store: Store) -> None:
    one = memory(
        "The relay listens on port 7001.",
        title="Relay",
        category="code",
        tags=("net", "prod"),
        importance=0.9,
        keywords=("socket",),
        scope="team/relay",
        source="src/relay.py",
        valid_from="2024-02-01T00:00:00.000000Z",
        valid_to="2030-02-01T00:00:00.000000Z",
        sensitive=True,
    )
    assert add(store, one) == [AddResult("stored", 1)]
    assert store.memories.get(one.id) == one
    assert store.memories.get_many([one.id, new_id()]) == {one.id: one}
    assert list(store.memories.everything()) == [one]


def test_same_id_and_content_changes_nothing(store: Store) -> None:
    one = memory("The relay listens on port 7001.")
    add(store, one)
    assert add(store, one) == [AddResult("unchanged", 1)]
    assert len(store.memories.revisions(one.id)) == 1
    replace(store, msgspec.structs.replace(one, importance=0.9))
    assert add(store, one) == [AddResult("unchanged", 2)]
    assert store.memories.stats().memories == {"active": 1}


def test_same_id_with_other_content_is_a_conflict(store: Store) -> None:
    one = memory("The relay listens on port 7001.")
    add(store, one)
    other = msgspec.structs.replace(one, content="The relay listens on port 9.")
    with pytest.raises(Conflict, match="other content"):
        add(store, other)
    assert store.memories.get(one.id) == one


def test_forgotten_id_is_not_reused(store: Store) -> None:
    one = memory("The relay listens on port 7001.")
    add(store, one)
    replace(store, msgspec.structs.replace(one, state="deleted"), "forget")
    with pytest.raises(Conflict, match="forgotten"):
        add(store, one)


def test_batch_is_added_completely_or_not_at_all(store: Store) -> None:
    known = memory("known")
    add(store, known)
    fresh, clash = memory("fresh"), memory("clash", id=known.id)
    with pytest.raises(Conflict):
        add(store, fresh, clash)
    assert [one.id for one in store.memories.everything()] == [known.id]
    assert found(store, "fresh") == []


def test_missing_memory_is_named(store: Store) -> None:
    missing = new_id()
    for act in (store.memories.get, store.memories.revisions, store.memories.purge):
        with pytest.raises(NotFound, match=missing):
            act(missing)


def test_each_change_is_a_revision(store: Store) -> None:
    one = memory("The relay listens on port 7001.")
    add(store, one)
    two = replace(store, msgspec.structs.replace(one, content="The relay listens on port 7002."))
    three = replace(store, msgspec.structs.replace(two, importance=0.9))
    assert (two.revision, three.revision) == (2, 3)
    assert three.updated_at > one.updated_at
    history = store.memories.revisions(one.id)
    assert [revision.memory for revision in history] == [one, two, three]
    assert [revision.action for revision in history] == ["remember", "edit", "edit"]
    assert found(store, "7001") == []
    assert found(store, "7002") == [one.id]


def test_change_to_an_older_revision_is_refused(store: Store) -> None:
    one = memory("The relay listens on port 7001.")
    add(store, one)
    replace(store, msgspec.structs.replace(one, content="first writer"))
    with pytest.raises(Conflict, match="revision 2"):
        replace(store, msgspec.structs.replace(one, content="second writer"))
    assert store.memories.get(one.id).content == "first writer"
    assert found(store, "second") == []


def test_forgetting_leaves_both_indexes_and_restoring_returns(store: Store) -> None:
    one = memory("The relay listens on port 7001.")
    add(store, one)
    model = store.vectors.adopt("tiny", "none", 2)
    embed(store, model, {one.content: (1, 0)})
    gone = replace(store, msgspec.structs.replace(one, state="deleted"), "forget")
    everything = Filter(states=("active", "superseded", "archived", "deleted"))
    assert found(store, "relay", everything) == []
    assert near(store, model, (1, 0), everything) == []
    assert store.jobs.backlog(model).waiting == 0
    replace(store, msgspec.structs.replace(gone, state="active"), "restore")
    assert found(store, "relay") == [one.id]
    embed(store, model, {one.content: (1, 0)})
    assert near(store, model, (1, 0)) == [one.id]


@pytest.mark.parametrize("neighbours", [0, 40])
@pytest.mark.parametrize("size", [20, 6_000])
def test_purged_memory_leaves_no_bytes(
    open_store: Open, tmp_path: Path, neighbours: int, size: int
) -> None:
    store = open_store()
    canary = "xyzzyplugh"
    filler = " ".join(f"word{number}" for number in range(size // 8))
    one = memory(
        f"The {canary} lives here. {filler}",
        title=f"About {canary}",
        tags=(f"{canary}tag",),
        keywords=(f"{canary}key",),
        source=f"file:///{canary}",
        scope=f"{canary}scope",
    )
    others = [memory(f"Neighbour {number} of the house. {filler}") for number in range(neighbours)]
    add(store, *others[: neighbours // 2], one, *others[neighbours // 2 :])
    model = store.vectors.adopt("tiny", "none", 2)
    vectors = {other.content: (0.0, 1.0) for other in (*others, one)}
    embed(store, model, vectors)
    edited = replace(
        store, msgspec.structs.replace(one, content=f"Now the {canary} moved. {filler}")
    )
    embed(store, model, {edited.content: (1, 0)})
    if others:
        store.links.add(link(one, "see-also", others[0]))
    assert canary.encode() in at_rest(tmp_path)
    store.memories.purge(one.id)
    left = at_rest(tmp_path).lower()
    assert canary.encode() not in left
    assert one.id.encode() not in left
    assert found(store, canary) == []
    assert near(store, model, (1, 0), depth=1) != [one.id]
    assert store.links.everything() == ()
    assert store.memories.stats().revisions == neighbours
    assert all(finding.ok for finding in store.upkeep.findings())
    with pytest.raises(NotFound):
        store.memories.get(one.id)


def test_purge_is_seen_by_another_open_store(open_store: Open) -> None:
    ours, theirs = open_store(), open_store()
    one = memory("The relay listens on port 7001.")
    add(ours, one)
    assert found(theirs, "relay") == [one.id]
    ours.memories.purge(one.id)
    assert found(theirs, "relay") == []


def test_imported_history_is_kept(store: Store) -> None:
    past = memory("It was so.")
    now = msgspec.structs.replace(past, content="It is so.", revision=2)
    revisions = (
        Revision(revision=1, changed_at=past.updated_at, action="remember", memory=past),
        Revision(revision=2, changed_at=now.updated_at, action="edit", memory=now),
    )
    assert store.memories.add_many([Entry(now, document(now), revisions)]) == [
        AddResult("stored", 2)
    ]
    assert store.memories.revisions(now.id) == revisions


def test_pages_are_ordered_and_counted(store: Store) -> None:
    days = [f"2024-01-0{day}T00:00:00.000000Z" for day in (1, 2, 3)]
    weights = (0.9, 0.1, 0.5)
    added = [
        memory(f"Day {day}", created_at=day, importance=w)
        for day, w in zip(days, weights, strict=True)
    ]
    add(store, *added)
    first, second, third = added
    newest = store.memories.page(Filter(), "recency", 2, 0)
    assert newest.memories == (third, second)
    assert newest.total == 3
    assert store.memories.page(Filter(), "recency", 2, 2).memories == (first,)
    assert store.memories.page(Filter(), "importance", 3, 0).memories == (first, third, second)


@pytest.mark.parametrize("sort", ["recency", "importance"])
def test_pages_continue_after_a_memory(store: Store, sort: Sort) -> None:
    """Memories with equal times and importance are each returned exactly once."""
    days = ("2024-01-01", "2024-01-01", "2024-01-02", "2024-01-01", "2024-01-03")
    importance = (0.5, 0.1, 0.1, 0.5, 0.1)
    made = [
        memory(f"Number {n}", created_at=days[n], importance=importance[n], tags=("x",))
        for n in range(5)
    ]
    add(store, *made, memory("Another tag.", created_at="2024-01-02"))
    filter = Filter(tags=("x",))
    turned, last = list[Memory](), None
    while (page := store.memories.page(filter, sort, 2, 0, last)).memories:
        assert page.total == 5
        turned += page.memories
        last = turned[-1].id
    assert turned == list(store.memories.page(filter, sort, 10, 0).memories)
    assert len(turned) == 5
    assert store.memories.page(filter, sort, 10, 1, turned[1].id).memories == tuple(turned[3:])


def test_pages_do_not_continue_after_a_hidden_memory(store: Store) -> None:
    one = memory("One thing.", owner="ana")
    add(store, one)
    with pytest.raises(NotFound, match=one.id):
        store.seen_by("bo").memories.page(Filter(viewer="bo"), "recency", 2, 0, one.id)


def test_counts_by_source(store: Store) -> None:
    sources = ("notes/a.md", "notes/a.md", "Notes/B.md", "talk.jsonl", None)
    add(store, *(memory(f"Number {n}", source=source) for n, source in enumerate(sources)))
    assert pairs(store.memories.sources(Filter(), None, 2)) == [
        ("notes/a.md", 2),
        ("Notes/B.md", 1),
    ]
    assert pairs(store.memories.sources(Filter(), "OTES/", 9)) == [
        ("notes/a.md", 2),
        ("Notes/B.md", 1),
    ]
    assert pairs(store.memories.sources(Filter(source="notes/"), None, 9)) == [("notes/a.md", 2)]


def test_counts_by_day_in_any_time_zone(store: Store) -> None:
    times = (
        "2024-03-01T00:30:00Z",
        "2024-03-01T23:00:00Z",
        "2024-03-02T12:00:00Z",
        "9999-12-31T23:00:00Z",
    )
    add(store, *(memory(f"Number {n}", created_at=time) for n, time in enumerate(times[:3])))
    assert pairs(store.memories.days(Filter(), 0, 9)) == [("2024-03-02", 1), ("2024-03-01", 2)]
    assert pairs(store.memories.days(Filter(), 60, 9)) == [("2024-03-02", 2), ("2024-03-01", 1)]
    assert pairs(store.memories.days(Filter(), -60, 9)) == [
        ("2024-03-02", 1),
        ("2024-03-01", 1),
        ("2024-02-29", 1),
    ]
    assert pairs(store.memories.days(Filter(), 0, 1)) == [("2024-03-02", 1)]
    add(store, memory("At the end of time.", created_at=times[3]))
    assert pairs(store.memories.days(Filter(), 120, 9))[0] == ("9999-12-31", 1)


def pairs(counts: tuple[Count, ...]) -> list[tuple[str, int]]:
    return [(count.name, count.memories) for count in counts]


def test_stats_count_what_is_stored(store: Store) -> None:
    one = memory("One thing.", category="code", tags=("a", "b"), scope="x")
    two = memory("Another thing.", tags=("a",), scope="y", sensitive=True)
    three = memory("A third thing.")
    add(store, one, two, three)
    store.links.add(link(one, "see-also", two))
    replace(store, msgspec.structs.replace(three, state="deleted"), "forget")
    stats = store.memories.stats()
    assert dict(stats.memories) == {"active": 2, "deleted": 1}
    assert dict(stats.categories) == {"code": 1, "facts": 1}
    assert dict(stats.scopes) == {"x": 1, "y": 1}
    assert dict(stats.tags) == {"a": 2, "b": 1}
    assert (stats.links, stats.revisions, stats.sensitive) == (1, 4, 1)
    assert stats.bytes


def test_another_open_store_sees_every_change(open_store: Open) -> None:
    ours, theirs = open_store(), open_store()
    one = memory("First words.")
    add(ours, one)
    assert theirs.memories.get(one.id) == one
    two: Memory = replace(theirs, msgspec.structs.replace(one, content="Second words."))
    assert ours.memories.get(one.id) == two


def test_id_prefix_matches_only_visible_memories(store: Store) -> None:
    ids = [f"aaaa1111-0000-7000-8000-00000000000{digit}" for digit in "19f"]
    for id, owner in zip(ids, ("ana", "bo", "ana"), strict=True):
        add(store, memory(f"text {id}", id=id, owner=owner))
    add(store, memory("another", id="aaab1111-0000-7000-8000-000000000001", owner="ana"))
    assert store.memories.ids_with_prefix("aaaa", 9) == ids
    assert store.memories.ids_with_prefix(ids[2][:-1], 9) == ids
    assert store.memories.ids_with_prefix("aaaa", 2) == ids[:2]
    assert store.seen_by("ana").memories.ids_with_prefix("aaaa1111-", 9) == [ids[0], ids[2]]
    assert store.memories.ids_with_prefix(ids[1], 9) == [ids[1]]


def test_write_times_and_named_times_are_stored_with_texts(
    store: Store,
) -> None:
    start, end = "2024-02-01T00:00:00.000000Z", "2030-02-01T00:00:00.000000Z"
    dated = memory("The fair is on 3 May 2024.", owner="ana", valid_from=start, valid_to=end)
    plain = memory("The relay.", owner="ana")
    add(store, dated, plain)
    ids = [dated.id, plain.id, new_id()]
    first = store.memories.dated(ids)
    assert {id: (row.created_at, row.valid_from, row.valid_to) for id, row in first.items()} == {
        one.id: (one.created_at, one.valid_from, one.valid_to) for one in (dated, plain)
    }
    assert (
        first[dated.id].times
        == document(dated).times
        != first[plain.id].times
        == document(plain).times
    )
    assert store.seen_by("ana").memories.dated(ids) == first
    assert store.seen_by("bo").memories.dated(ids) == {}
    later = replace(store, msgspec.structs.replace(dated, content="The fair is on 4 May 2024."))
    assert store.memories.dated(ids)[dated.id].times not in (
        first[dated.id].times,
        first[plain.id].times,
    )
    replace(store, msgspec.structs.replace(later, content="There is no fair."))
    assert store.memories.dated(ids)[dated.id].times == first[plain.id].times


def test_times_of_a_text_are_stored_again_with_its_terms(store: Store) -> None:
    dated = memory("The fair is on 3 May 2024.")
    store.memories.add_many(
        [Entry(dated, msgspec.structs.replace(document(dated), times=None))]
    )  # the times as before
    assert store.memories.dated([dated.id])[dated.id].times is None
    store.upkeep.rebuild_lexical(iter([(dated, document(dated))]))
    assert store.memories.dated([dated.id])[dated.id].times == document(dated).times


def test_filter_and_importance_are_known_without_reading_rows(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = memory("The relay listens on port 7001.", scope="work", importance=0.7)
    other = memory("The gate is green.", scope="home", importance=0.1)
    add(store, shown, other)
    asked, filter = [other.id, shown.id, new_id()], Filter(scope="work")
    assert store.memories.shown(asked, filter) == {shown.id: 0.7}
    assert store.memories.shown(asked, Filter()) == {shown.id: 0.7, other.id: 0.1}
    replace(store, msgspec.structs.replace(shown, importance=0.9))
    later = memory("The lock is red.", scope="work", importance=1.0)
    add(store, later)
    monkeypatch.setattr(store.memories, "get_many", None)
    assert store.memories.shown([*asked, later.id], filter) == {shown.id: 0.9, later.id: 1.0}
    assert store.memories.shown([], filter) == {}
