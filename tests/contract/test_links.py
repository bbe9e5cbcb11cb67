"""Typed links set the state of memories, and invalid links are refused."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from support.stores import add, link, memory, replace
from trivet.errors import Conflict, NotFound
from trivet.store.relational.store import RelationalStore as Store
from trivet.types import LinkKind, Memory, State

ONE_WAY: tuple[LinkKind, ...] = ("supersedes", "resolved-by", "part-of")


@pytest.fixture
def three(store: Store) -> tuple[Memory, Memory, Memory]:
    memories = (memory("first"), memory("second"), memory("third"))
    add(store, *memories)
    return memories


def state_of(store: Store, one: Memory) -> State:
    return store.memories.get(one.id).state


@pytest.mark.parametrize("kind", get_args(LinkKind))
def test_link_is_found_from_both_ends_and_removed(
    store: Store, three: tuple[Memory, Memory, Memory], kind: LinkKind
) -> None:
    a, b, c = three
    made = link(a, kind, b)
    assert store.links.add(made)
    assert (
        store.links.touching([a.id])
        == store.links.touching([b.id])
        == store.links.everything()
        == (made,)
    )
    assert store.links.touching([c.id]) == ()
    assert store.links.from_sources([a.id], kind) == store.links.to_targets([b.id], kind) == (made,)
    assert store.links.from_sources([b.id], kind) == store.links.to_targets([a.id], kind) == ()
    store.links.remove(a.id, kind, b.id)
    assert store.links.everything() == ()
    with pytest.raises(NotFound):
        store.links.remove(a.id, kind, b.id)


def test_repeated_link_is_stored_once(store: Store, three: tuple[Memory, Memory, Memory]) -> None:
    a, b, _ = three
    assert store.links.add(link(a, "see-also", b))
    assert not store.links.add(link(a, "see-also", b))
    assert len(store.links.everything()) == 1


@pytest.mark.parametrize("kind", ONE_WAY)
def test_cycle_is_refused(
    store: Store, three: tuple[Memory, Memory, Memory], kind: LinkKind
) -> None:
    a, b, c = three
    store.links.add(link(a, kind, b))
    store.links.add(link(b, kind, c))
    for source, target in ((c, a), (b, a), (a, a)):
        with pytest.raises(Conflict, match="cycle"):
            store.links.add(link(source, kind, target))
    assert len(store.links.everything()) == 2
    assert state_of(store, a) == "active"


def test_see_also_may_go_both_ways(store: Store, three: tuple[Memory, Memory, Memory]) -> None:
    a, b, _ = three
    store.links.add(link(a, "see-also", b))
    store.links.add(link(b, "see-also", a))
    assert len(store.links.everything()) == 2


def test_different_kinds_do_not_form_a_cycle(
    store: Store, three: tuple[Memory, Memory, Memory]
) -> None:
    a, b, _ = three
    store.links.add(link(a, "supersedes", b))
    store.links.add(link(b, "part-of", a))
    assert len(store.links.everything()) == 2


def test_link_to_a_missing_memory_is_refused(
    store: Store, three: tuple[Memory, Memory, Memory]
) -> None:
    a, *_ = three
    for made in (
        link(a, "see-also", memory("not stored")),
        link(memory("not stored"), "see-also", a),
    ):
        with pytest.raises(NotFound):
            store.links.add(made)


def test_superseding_and_undoing_set_the_state(
    store: Store, three: tuple[Memory, Memory, Memory]
) -> None:
    a, b, _ = three
    store.links.add(link(b, "supersedes", a))
    assert (state_of(store, a), state_of(store, b)) == ("superseded", "active")
    store.links.remove(b.id, "supersedes", a.id)
    assert state_of(store, a) == "active"


def test_state_follows_the_successors_state(
    store: Store, three: tuple[Memory, Memory, Memory]
) -> None:
    a, b, _ = three
    store.links.add(link(b, "supersedes", a))
    gone = replace(store, msgspec.structs.replace(b, state="deleted"), "forget")
    assert state_of(store, a) == "active"
    assert store.links.to_targets([a.id], "supersedes") == ()
    replace(store, msgspec.structs.replace(gone, state="active"), "restore")
    assert state_of(store, a) == "superseded"
    store.memories.purge(b.id)
    assert state_of(store, a) == "active"


def test_one_of_two_successors_is_enough(
    store: Store, three: tuple[Memory, Memory, Memory]
) -> None:
    a, b, c = three
    store.links.add(link(b, "supersedes", a))
    store.links.add(link(c, "supersedes", a))
    store.memories.purge(b.id)
    assert state_of(store, a) == "superseded"


@pytest.mark.parametrize("given", ["active", "archived"])
def test_rewrite_does_not_undo_supersession(
    store: Store, three: tuple[Memory, Memory, Memory], given: State
) -> None:
    """A writer that read the row before the link was made must not revert the link's effect."""
    a, b, _ = three
    if given == "archived":
        a = replace(store, msgspec.structs.replace(a, state="archived"))
    store.links.add(link(b, "supersedes", a))
    replace(store, msgspec.structs.replace(a, state="active", importance=0.9))
    assert state_of(store, a) == "superseded"
    assert all(finding.ok for finding in store.upkeep.findings())
