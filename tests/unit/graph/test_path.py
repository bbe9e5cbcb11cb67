"""The way by which the graph reached a memory: a true way, the strongest short one, through what is seen."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from trivet.graph.network import Network
from trivet.graph.walk import Paths, Step, WalkParameters

from .test_network import State, built
from .test_walk import MEMORIES, hidden, seen, states


def path_to(
    network: Network, visible: NDArray[np.bool_], memory: int, hits: set[int], concepts: set[int]
) -> tuple[Step, ...]:
    return Paths(network, visible, sorted(hits), sorted(concepts), [memory], WalkParameters()).to(
        memory
    )


def test_a_concept_the_query_names() -> None:
    network = built({1: {1: 1}, 2: {1: 1}})
    assert path_to(network, seen(), 2, set(), {1}) == (("concept", 1),)


def test_a_hit_that_shares_a_concept() -> None:
    network = built({1: {1: 1}, 2: {1: 1}})
    assert path_to(network, seen(), 2, {1}, set()) == (("memory", 1), ("concept", 1))


def test_a_memory_in_between() -> None:
    network = built({1: {1: 1}, 2: {1: 1, 2: 1}, 3: {2: 1}})
    assert path_to(network, seen(), 3, {1}, set()) == (
        ("memory", 1),
        ("concept", 1),
        ("memory", 2),
        ("concept", 2),
    )
    assert path_to(network, seen(), 3, set(), {1}) == (
        ("concept", 1),
        ("memory", 2),
        ("concept", 2),
    )


def test_a_hit_that_the_query_names_something_of() -> None:
    network = built({1: {1: 1, 2: 1}, 2: {1: 1}, 3: {2: 1}})
    assert path_to(network, seen(), 2, {1}, {2}) == (("concept", 2), ("memory", 1), ("concept", 1))


def test_a_hit_is_not_its_own_reason() -> None:
    network = built({1: {1: 1}, 2: {1: 1}})
    assert path_to(network, seen(), 1, {1}, set()) == ()


def test_the_rarer_concept_explains_more() -> None:
    network = built({1: {1: 1, 2: 1}, 2: {1: 1, 2: 1}, 3: {1: 1}, 4: {1: 1}})
    assert path_to(network, seen(), 2, {1}, set()) == (("memory", 1), ("concept", 2))


def test_no_way() -> None:
    network = built({1: {1: 1}, 2: {2: 1}, 3: {2: 1}})
    assert path_to(network, seen(), 2, {1}, {9}) == ()
    assert path_to(network, seen(), 7, {1}, {1}) == ()


def test_not_through_what_is_not_seen() -> None:
    network = built({1: {1: 1}, 2: {1: 1, 2: 1}, 3: {2: 1}, 4: {1: 1}})
    assert path_to(network, seen(2), 3, {1}, {1}) == ()


@given(
    states,
    hidden,
    st.integers(0, MEMORIES - 1),
    st.sets(st.integers(0, MEMORIES - 1), max_size=3),
    st.sets(st.integers(0, 6), max_size=2),
)
def test_every_step_of_a_path_is_there(
    state: State, hidden: set[int], memory: int, hits: set[int], concepts: set[int]
) -> None:
    hits = hits - hidden - {memory}
    steps = path_to(built(state), seen(*hidden), memory, hits, concepts)
    assert len(steps) <= 5
    if not steps:
        return
    kind, first = steps[0]
    assert first in (hits if kind == "memory" else concepts)
    for (kind, node), (_, following) in zip(steps, [*steps[1:], ("memory", memory)], strict=True):
        mentions, mentioned = (node, following) if kind == "memory" else (following, node)
        assert mentioned in state[mentions]
        assert kind == "concept" or node not in hidden


def test_a_link_is_a_way_too() -> None:
    network = built({1: {1: 1}, 2: {2: 1}, 3: {1: 1}})
    network.replace({}, {1: np.array([2], np.int32), 2: np.array([1], np.int32)})
    assert path_to(network, seen(), 2, {1}, set()) == (("memory", 1),)
    assert path_to(network, seen(), 2, {1}, {1}) == (("concept", 1), ("memory", 1))
