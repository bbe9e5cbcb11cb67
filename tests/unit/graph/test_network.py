"""Replacing parts of the in-memory graph equals rebuilding it from the final state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trivet.graph.network import Adjacency, Keys, Network, Pair, unique_with_positions

State = dict[int, dict[int, int]]


def pair(mentions: Mapping[int, int]) -> Pair:
    keys = sorted(mentions)
    return np.array(keys, np.int32), np.array([mentions[key] for key in keys], np.uint8)


def built(
    state: Mapping[int, Mapping[int, int]], links: Mapping[int, Iterable[int]] | None = None
) -> Network:
    """Build a network from memory -> concept -> role."""
    rows = [
        (memory, concept, role)
        for memory, found in state.items()
        for concept, role in found.items()
    ]
    memories, concepts, roles = (np.array([row[at] for row in rows]) for at in range(3))
    linked = {
        memory: np.array(sorted(others), np.int32) for memory, others in (links or {}).items()
    }
    return Network.of(
        memories.astype(np.int32), concepts.astype(np.int32), roles.astype(np.uint8), linked
    )


def gathered(side: Adjacency, nodes: Keys) -> list[tuple[int, int, int]]:
    found = side.gather(nodes)
    return sorted(
        zip(found.origins.tolist(), found.keys.tolist(), found.roles.tolist(), strict=True)
    )


def assert_alike(one: Network, other: Network, most: int) -> None:
    nodes = np.arange(most, dtype=np.int32)
    assert one.edges == other.edges
    for mine, theirs in ((one.of_memory, other.of_memory), (one.of_concept, other.of_concept)):
        for node in nodes.tolist():
            my_keys, my_roles = mine.of(node)
            their_keys, their_roles = theirs.of(node)
            assert (my_keys.tolist(), my_roles.tolist()) == (
                their_keys.tolist(),
                their_roles.tolist(),
            )
        assert mine.counts(nodes).tolist() == theirs.counts(nodes).tolist()
        for asked in (nodes, nodes[::-1], nodes[::3], nodes[:0], np.repeat(nodes[:5], 2)):
            assert gathered(mine, asked) == gathered(theirs, asked)
    assert one.links_of(nodes.tolist()) == other.links_of(nodes.tolist())


mentions = st.dictionaries(st.integers(0, 9), st.integers(0, 2), max_size=4)
states = st.dictionaries(st.integers(0, 9), mentions, max_size=6)
linked = st.dictionaries(st.integers(0, 9), st.sets(st.integers(0, 9), max_size=3), max_size=4)
changes = st.lists(
    st.tuples(st.dictionaries(st.integers(0, 19), mentions, max_size=3), linked), max_size=6
)


@given(states, changes)
def test_replace_equals_rebuild(
    start: State, then: list[tuple[State, dict[int, set[int]]]]
) -> None:
    network = built(start)
    final: State = dict(start)
    links: dict[int, set[int]] = {}
    for found, others in then:
        network.replace(
            {memory: pair(one) for memory, one in found.items()},
            {memory: np.array(sorted(one), np.int32) for memory, one in others.items()},
        )
        final |= found
        links |= others
    rebuilt = built(final, {memory: one for memory, one in links.items() if one})
    assert_alike(network, rebuilt, 25)
    compacted = network.compacted()
    assert compacted.changed == 0
    assert_alike(compacted, rebuilt, 25)


def test_many_changes_need_compaction() -> None:
    network = built({memory: {memory + 100: 1, 500: 1} for memory in range(1, 60)})
    at_first = network.needs_compaction
    for memory in range(60, 90):
        network.replace({memory: pair({memory + 100: 1, 500: 1})}, {})
    assert (at_first, network.needs_compaction, network.compacted().needs_compaction) == (
        False,
        True,
        False,
    )


def test_removed_nodes_leave_nothing() -> None:
    network = built({1: {5: 1, 6: 2}, 2: {5: 1}}, {1: [2], 2: [1]})
    network.replace({1: pair({})}, {1: np.zeros(0, np.int32)})
    assert network.edges == 1
    assert network.of_memory.of(1)[0].tolist() == []
    assert network.of_concept.of(5)[0].tolist() == [2]
    assert network.of_concept.of(6)[0].tolist() == []
    assert network.links_of([1]) == ([], [])
    assert network.links_of([2, 2]) == ([0, 1], [1, 1])


def test_node_ids_beyond_arrays() -> None:
    network = built({1: {1: 1}})
    far = np.array([1, 10_000, 2_000_000_000], np.int32)
    assert network.of_memory.counts(far).tolist() == [1, 0, 0]
    assert gathered(network.of_memory, far) == [(0, 1, 1)]
    assert network.of_memory.of(10_000)[0].tolist() == []
    network.replace({10_000: pair({1: 2, 90_000: 1})}, {})
    assert network.of_concept.of(1)[0].tolist() == [1, 10_000]
    assert gathered(network.of_memory, far) == [(0, 1, 1), (1, 1, 2), (1, 90_000, 1)]


def test_empty_network() -> None:
    network = built({})
    nodes = np.array([0, 7], np.int32)
    assert network.edges == 0
    assert network.of_memory.counts(nodes).tolist() == [0, 0]
    assert gathered(network.of_concept, nodes) == []
    assert network.links_of([0, 7]) == ([], [])


def test_replace_does_not_change_arrays_in_use() -> None:
    """A walk in another thread may hold arrays from before the change."""
    network = built({1: {5: 1}, 2: {5: 1}})
    keys, roles = network.of_concept.of(5)
    network.replace({1: pair({}), 3: pair({5: 2})}, {})
    assert (keys.tolist(), roles.tolist()) == ([1, 2], [1, 1])
    keys, roles = network.of_concept.of(5)
    network.replace({2: pair({})}, {})
    assert (keys.tolist(), roles.tolist()) == ([2, 3], [1, 2])


def test_change_count_covers_only_affected_nodes() -> None:
    network = built({memory: {memory % 50: 1} for memory in range(1_000)})
    network.replace({1: pair({7: 1})}, {})
    assert network.changed == 3, "the memory, its old concept and its new concept"


def test_mention_uses_few_bytes() -> None:
    network = built(
        {memory: {(memory * 7 + at) % 3_000: 1 for at in range(10)} for memory in range(3_000)}
    )
    assert network.bytes / network.edges < 15


@pytest.mark.parametrize("highest", [1, 50, 3_000, 2_000_000])
@pytest.mark.parametrize("count", [0, 1, 300])
def test_unique_keys_keep_order(highest: int, count: int) -> None:
    """Table lookup and sorting must give the same result."""
    keys = np.random.default_rng(count).integers(0, highest, count).astype(np.int32)
    found, places = unique_with_positions(keys)
    known, wanted = np.unique(keys, return_inverse=True)
    assert (found.tolist(), places.tolist()) == (known.tolist(), wanted.tolist())
