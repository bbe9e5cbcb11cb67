"""The graph walk computes the exact sums, ignores hidden memories and bounds its work."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from trivet.graph import walk as walking
from trivet.graph.network import HUB_MENTIONS, Adjacency, Keys, Neighbours, Network
from trivet.graph.walk import (
    LINK_WEIGHT,
    MAX_PUSHED_MEMORIES,
    MIN_SURE_RATIO,
    ROUNDS,
    NodeMasses,
    WalkParameters,
    walk,
)

from .test_network import State, built, pair

HOW = WalkParameters()
MEMORIES = 10
Links = Mapping[int, set[int]]

mentions = st.dictionaries(st.integers(0, 6), st.integers(0, 2), max_size=4)
states = st.dictionaries(st.integers(0, MEMORIES - 1), mentions, max_size=MEMORIES)
pairs = st.sets(
    st.tuples(st.integers(0, MEMORIES - 1), st.integers(0, MEMORIES - 1)).filter(
        lambda p: p[0] != p[1]
    ),
    max_size=4,
)
starts = st.dictionaries(st.integers(0, MEMORIES - 1), st.floats(0.01, 1), max_size=4)
named = st.dictionaries(st.integers(0, 6), st.floats(0.01, 1), max_size=3)
hidden = st.sets(st.integers(0, MEMORIES - 1), max_size=4)
ways = st.builds(
    WalkParameters,
    onward=st.floats(0, 1),
    rare=st.floats(0, 2),
    rest=st.floats(0.01, 2),
    about=st.floats(0, 10),
)  # fmt: skip


def masses(of: Mapping[int, float]) -> NodeMasses:
    keys = sorted(of)
    return NodeMasses(np.array(keys, np.int32), np.array([of[key] for key in keys], np.float64))


def seen(*not_seen: int, size: int = MEMORIES) -> NDArray[np.bool_]:
    mask = np.ones(size, bool)
    mask[list(not_seen)] = False
    return mask


def both_ways(links: set[tuple[int, int]]) -> dict[int, set[int]]:
    linked: dict[int, set[int]] = {}
    for one, other in links:
        linked.setdefault(one, set()).add(other)
        linked.setdefault(other, set()).add(one)
    return linked


def walked(
    network: Network,
    visible: NDArray[np.bool_],
    hits: Mapping[int, float],
    concepts: Mapping[int, float],
    how: WalkParameters = HOW,
) -> NDArray[np.float64]:
    """Return the arriving mass by key."""
    arrived = walk(network, visible, masses(hits), masses(concepts), how)
    dense = np.zeros(max(len(visible), *(key + 1 for key in arrived.keys.tolist()), 1))
    dense[arrived.keys] = arrived.values
    return dense


def reference(
    state: State,
    links: Links,
    visible: Sequence[bool],
    hits: Mapping[int, float],
    concepts: Mapping[int, float],
    how: WalkParameters,
) -> NDArray[np.float64]:
    """Compute the same walk by plain sums, with no bound on the work."""
    count = len(visible)
    every = sorted({concept for found in state.values() for concept in found} | set(concepts))
    holders = {
        c: [m for m in sorted(state) if c in state[m] and m < count and visible[m]] for c in every
    }
    weight = {c: _weight([state[m][c] for m in holders[c]], how) for c in every}

    def pull(memory: int, concept: int) -> float:
        return (how.about if state[memory][concept] == 2 else 1.0) * float(
            len(state[memory]) ** -how.even
        )

    total = {c: max(sum(pull(m, c) for m in holders[c]), walking.MIN_PULL) for c in every}

    def spread(at: Mapping[int, float]) -> NDArray[np.float64]:
        arrived = np.zeros(count)
        for concept, mass in at.items():
            for memory in holders[concept]:
                arrived[memory] += mass * pull(memory, concept) / total[concept]
        return arrived

    def push(mass: Mapping[int, float]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        arrived, returned = np.zeros(count), np.zeros(count)
        for memory, amount in mass.items():
            through = {c: weight[c] for c in state.get(memory, {}) if len(holders[c]) > 1}
            linked = [other for other in links.get(memory, ()) if other < count and visible[other]]
            room = how.rest + sum(through.values()) + LINK_WEIGHT * len(linked)
            flow = {c: how.onward**2 * amount * w / room for c, w in through.items()}
            arrived += spread(flow)
            for other in linked:
                arrived[other] += how.onward**2 * amount * LINK_WEIGHT / room
            returned[memory] += sum(part * pull(memory, c) / total[c] for c, part in flow.items())
        return arrived, returned

    first = spread({concept: how.onward * mass for concept, mass in concepts.items()})
    passed_on, returned = push(hits)
    arrived = first + passed_on - returned
    at = first + passed_on
    for _ in range(ROUNDS - 1):
        at, _ = push({memory: mass for memory, mass in enumerate(at.tolist()) if mass})
        arrived += at
    return np.maximum(arrived, 0.0)


def _weight(roles: Sequence[int], how: WalkParameters) -> float:
    maybe = sum(role == 0 for role in roles)
    sure = len(roles) - maybe
    return float(len(roles)) ** -how.rare if sure > MIN_SURE_RATIO * maybe else 0.0


@given(states, pairs, hidden, starts, named, ways)
def test_walk_equals_reference(
    state: State,
    links: set[tuple[int, int]],
    hidden: set[int],
    hits: dict[int, float],
    concepts: dict[int, float],
    how: WalkParameters,
) -> None:
    hits = {memory: mass for memory, mass in hits.items() if memory not in hidden}
    linked, visible = both_ways(links), seen(*hidden)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walking, "MIN_MASS_SHARE", 0.0)
        arrived = walked(built(state, linked), visible, hits, concepts, how)
    assert np.allclose(
        arrived, reference(state, linked, visible.tolist(), hits, concepts, how), atol=1e-9, rtol=0
    )


@given(states, pairs, hidden, starts, named)
def test_hidden_memories_have_no_effect(
    state: State,
    links: set[tuple[int, int]],
    hidden: set[int],
    hits: dict[int, float],
    concepts: dict[int, float],
) -> None:
    hits = {memory: mass for memory, mass in hits.items() if memory not in hidden}
    without = {memory: found for memory, found in state.items() if memory not in hidden}
    fewer = {pair for pair in links if not hidden & set(pair)}
    arrived = walked(built(state, both_ways(links)), seen(*hidden), hits, concepts)
    assert np.array_equal(
        arrived, walked(built(without, both_ways(fewer)), seen(*hidden), hits, concepts)
    )
    assert not arrived[list(hidden)].any()


@given(states, pairs, hidden, starts, named)
def test_arriving_mass_is_bounded(
    state: State,
    links: set[tuple[int, int]],
    hidden: set[int],
    hits: dict[int, float],
    concepts: dict[int, float],
) -> None:
    arrived = walked(built(state, both_ways(links)), seen(*hidden), hits, concepts)
    assert np.isfinite(arrived).all()
    assert (arrived >= 0).all()
    assert arrived.sum() <= sum(hits.values()) + sum(concepts.values()) + 1e-9


@given(
    states, starts, named, st.lists(st.tuples(st.integers(0, MEMORIES - 1), mentions), max_size=5)
)
def test_changed_network_walks_like_rebuilt_one(
    state: State,
    hits: dict[int, float],
    concepts: dict[int, float],
    changes: list[tuple[int, dict[int, int]]],
) -> None:
    network = built(state)
    for memory, found in changes:
        network.replace({memory: pair(found)}, {})
        state = {**state, memory: found}
    expected = walked(built(state), seen(), hits, concepts)
    assert np.allclose(walked(network, seen(), hits, concepts), expected, atol=1e-12, rtol=0)


def test_walk_reaches_two_steps() -> None:
    network = built({1: {1: 1}, 2: {1: 1, 2: 1}, 3: {2: 1}, 4: {3: 1}})
    arrived = walked(network, seen(), {1: 1.0}, {})
    assert arrived[2] > arrived[3] > 0
    assert arrived[4] == 0


def test_immediate_return_is_not_counted() -> None:
    network = built({1: {1: 1}, 2: {1: 1}, 3: {1: 1}})
    twice = walked(network, seen(), {1: 1.0}, {})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(walking, "ROUNDS", 1)
        once = walked(network, seen(), {1: 1.0}, {})
    assert once[1] == pytest.approx(0)
    assert once[2] == once[3] > 0
    assert 0 < twice[1] < twice[2], "mass returned through other memories must count"


def test_rare_concept_carries_more_mass() -> None:
    common = {memory: {2: 1} for memory in range(3, 40)}
    network = built({1: {1: 1, 2: 1}, 2: {1: 1}, **common})
    arrived = walked(network, seen(size=40), {1: 1.0}, {})
    assert arrived[2] > 5 * arrived[3] > 0


def test_about_role_attracts_more_mass() -> None:
    arrived = walked(built({1: {1: 1}, 2: {1: 2}, 3: {1: 1}}), seen(), {1: 1.0}, {})
    assert arrived[2] > arrived[3] > 0


def test_many_mentions_attract_less_mass_each() -> None:
    long = {2: dict.fromkeys(range(1, 30), 1)}
    arrived = walked(built({1: {1: 1}, 3: {1: 1}, **long}), seen(), {1: 1.0}, {})
    assert arrived[3] > arrived[2] > 0


def test_unsure_concept_carries_no_mass() -> None:
    assert not walked(built({1: {1: 0}, 2: {1: 0}, 3: {1: 0}}), seen(), {1: 1.0}, {}).any()
    assert walked(built({1: {1: 0}, 2: {1: 0}, 3: {1: 1}}), seen(), {1: 1.0}, {})[2] > 0


def test_links_are_followed_in_cycles() -> None:
    network = built({}, both_ways({(1, 2), (2, 3), (3, 1)}))
    arrived = walked(network, seen(), {1: 1.0}, {})
    assert arrived[2] == pytest.approx(arrived[3])
    assert arrived[2] > 0


def test_hub_is_not_followed() -> None:
    state: State = {memory: {1: 1} for memory in range(HUB_MENTIONS + 1)}
    visible = seen(size=HUB_MENTIONS + 1)
    assert not walked(built(state), visible, {1: 1.0}, {}).any()
    del state[HUB_MENTIONS]
    assert walked(built(state), visible, {1: 1.0}, {})[2] > 0


def test_hidden_mentions_do_not_make_a_hub() -> None:
    """The number of hidden mentions of a name must not change the result."""
    state: State = {memory: {1: 1} for memory in range(2 * HUB_MENTIONS)}
    visible = np.zeros(2 * HUB_MENTIONS, bool)
    visible[:3] = True
    alone = walked(built({memory: {1: 1} for memory in range(3)}), visible, {1: 1.0}, {})
    assert alone[2] > 0
    assert np.array_equal(walked(built(state), visible, {1: 1.0}, {}), alone)


def test_empty_walk() -> None:
    assert not walked(built({}), seen(), {1: 1.0}, {3: 1.0}).any()
    assert not walked(built({1: {1: 1}, 2: {1: 1}}), seen(), {}, {}).any()
    assert not walked(built({1: {1: 1}, 2: {1: 1}}), np.zeros(1, bool), {1: 1.0}, {1: 1.0}).any()


def test_unknown_seeds_are_ignored() -> None:
    network = built({1: {1: 1}, 2: {1: 1}, 500: {1: 1}})
    arrived = walked(network, seen(), {1: 0.5, 99: 0.3, 500: 0.2, 100_000: 0.1}, {1: 0.2, 77: 0.2})
    assert arrived[2] > 0
    assert not arrived[MEMORIES:].any()


class CountingAdjacency(Adjacency):
    """Adjacency that records how many nodes each call asks for."""

    asked: list[int]

    def gather(self, nodes: Keys) -> Neighbours:
        self.asked.append(len(nodes))
        return super().gather(nodes)


def test_pushed_memories_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walking, "MIN_MASS_SHARE", 0.0)
    count = 20 * MAX_PUSHED_MEMORIES
    state: State = {
        memory: {memory // 10: 1, 1_000_000 + memory // 7: 1} for memory in range(count)
    }
    network = built(state)
    network.of_memory.__class__ = CountingAdjacency
    network.of_memory.asked = []  # type: ignore[attr-defined]  # its class is CountingAdjacency now
    hits = dict.fromkeys(range(0, count, count // 300), 1 / 300)
    arrived = walked(network, seen(size=count), hits, {})
    pushed = network.of_memory.asked  # type: ignore[attr-defined]
    assert len(pushed) == ROUNDS
    assert pushed[0] == len(hits)
    assert max(pushed[1:]) == MAX_PUSHED_MEMORIES
    assert np.array_equal(arrived, walked(built(state), seen(size=count), hits, {})), (
        "the walk must be deterministic"
    )


def test_rarest_concepts_are_followed_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Concept N leads to N memories, and all start at memory 0."""
    state: State = {0: dict.fromkeys(range(1, 9), 1)}
    state |= {
        10 * concept + other: {concept: 1} for concept in range(1, 9) for other in range(concept)
    }
    network, visible = built(state), seen(size=100)
    reached = {concept: 10 * concept for concept in range(1, 9)}
    everything = walked(network, visible, {0: 1.0}, {})
    assert all(everything[memory] > 0 for memory in reached.values())
    monkeypatch.setattr(walking, "MAX_MENTIONS_PER_ROUND", 2 + 3 + 4)
    bounded = walked(network, visible, {0: 1.0}, {})
    assert [concept for concept, memory in reached.items() if bounded[memory] > 0] == [1, 2, 3]
    monkeypatch.setattr(walking, "MAX_MENTIONS_PER_ROUND", sum(range(2, 10)))
    assert np.array_equal(walked(network, visible, {0: 1.0}, {}), everything), (
        "the exact limit must not cut anything"
    )
