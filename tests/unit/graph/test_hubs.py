"""Cached hub counts equal fresh counts."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from trivet.graph.network import COUNTS_BYTES, FILTERS_BYTES, HUB_MENTIONS, Hubs, HubsByFilter
from trivet.types import Filter

from .test_network import built

SIZE = HUB_MENTIONS + 40
COMMON = 1


def test_only_visible_memories_count() -> None:
    network = built({memory: {COMMON: 1} for memory in range(SIZE)})
    concepts = np.array([COMMON, 2], np.int32)
    assert Hubs().among(network, np.ones(SIZE, bool), concepts).tolist() == [True, False]
    few = np.arange(SIZE) < HUB_MENTIONS
    assert Hubs().among(network, few, concepts).tolist() == [False, False]


@given(st.lists(st.tuples(st.integers(0, SIZE - 1), st.booleans()), max_size=120))
def test_cached_counts_equal_fresh_counts(changes: list[tuple[int, bool]]) -> None:
    network = built({memory: {COMMON: 1} for memory in range(SIZE)})
    visible, concepts, kept = np.ones(SIZE, bool), np.array([COMMON], np.int32), Hubs()
    for memory, mentions in changes:
        found = np.array([COMMON] if mentions else [], np.int32)
        network.replace({memory: (found, np.ones(len(found), np.uint8))}, {})
        assert kept.among(network, visible, concepts) == Hubs().among(network, visible, concepts)


def test_count_far_above_limit_is_not_repeated() -> None:
    network = built({memory: {COMMON: 1} for memory in range(SIZE)})
    concepts, kept = np.array([COMMON], np.int32), Hubs()
    assert kept.among(network, np.ones(SIZE, bool), concepts).all()
    network.replace({0: (np.zeros(0, np.int32), np.zeros(0, np.uint8))}, {})
    # A fresh count with an empty mask would differ.
    assert kept.among(network, np.zeros(SIZE, bool), concepts).all()


def test_cache_is_per_filter_and_network() -> None:
    network, by_filter = built({1: {COMMON: 1}}), HubsByFilter()
    first = by_filter.of(network, Filter(scope="a"))
    assert by_filter.of(network, Filter(scope="a")) is first
    assert by_filter.of(network, Filter(scope="b")) is not first
    for number in range(FILTERS_BYTES // COUNTS_BYTES):
        by_filter.of(network, Filter(scope=f"other/{number}"))
    assert by_filter.of(network, Filter(scope="a")) is not first
    kept = by_filter.of(network, Filter())
    assert by_filter.of(built({1: {COMMON: 1}}), Filter()) is not kept
