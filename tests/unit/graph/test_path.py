"""The path that explains a graph hit is real, short and strong, through visible memories only."""

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


def test_path_through_query_concept() -> None:
    network = built({1: {1: 1}, 2: {1: 1}})
    assert path_to(network, seen(), 2, set(), {1}) == (("concept", 1),)


def test_path_from_hit_through_shared_concept() -> None:
    network = built({1: {1: 1}, 2: {1: 1}})
    assert path_to(network, seen(), 2, {1}, set()) == (("memory", 1), ("concept", 1))


def test_path_through_intermediate_memory() -> None:
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


def test_path_from_query_concept_through_hit() -> None:
    network = built({1: {1: 1, 2: 1}, 2: {1: 1}, 3: {2: 1}})
    assert path_to(network, seen(), 2, {1}, {2}) == (("concept", 2), ("memory", 1), ("concept", 1))


def test_hit_does_not_explain_itself() -> None:
    network = built({1: {1: 1}, 2: {1: 1}})
    assert path_to(network, seen(), 1, {1}, set()) == ()


def test_rarer_concept_is_preferred() -> None:
    network = built({1: {1: 1, 2: 1}, 2: {1: 1, 2: 1}, 3: {1: 1}, 4: {1: 1}})
    assert path_to(network, seen(), 2, {1}, set()) == (("memory", 1), ("concept", 2))


def test_no_path() -> None:
    network = built({1: {1: 1}, 2: {2: 1}, 3: {2: 1}})
    assert path_to(network, seen(), 2, {1}, {9}) == ()
    assert path_to(network, seen(), 7, {1}, {1}) == ()


def test_path_avoids_hidden_memories() -> None:
    network = built({1: {1: 1}, 2: {1: 1, 2: 1}, 3: {2: 1}, 4: {1: 1}})
    assert path_to(network, seen(2), 3, {1}, {1}) == ()


@given(
    states,
    hidden,
    st.integers(0, MEMORIES - 1),
    st.sets(st.integers(0, MEMORIES - 1), max_size=3),
    st.sets(st.integers(0, 6), max_size=2),
)
def test_every_path_step_exists(
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


def test_path_through_link() -> None:
    network = built({1: {1: 1}, 2: {2: 1}, 3: {1: 1}})
    network.replace({}, {1: np.array([2], np.int32), 2: np.array([1], np.int32)})
    assert path_to(network, seen(), 2, {1}, set()) == (("memory", 1),)
    assert path_to(network, seen(), 2, {1}, {1}) == (("concept", 1), ("memory", 1))
