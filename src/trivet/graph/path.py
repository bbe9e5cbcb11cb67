"""By what way the walk reached a memory: the strongest short path back to the query, for people to read."""

from __future__ import annotations

from collections.abc import Set

import numpy as np
from numpy.typing import NDArray

from trivet.graph.network import Network
from trivet.graph.walk import HUB, Walk, weigh_concepts

# Nodes on a path, in order from the query: ("concept", key) and ("memory", key).
Step = tuple[str, int]

# How many memories beyond the first ring are looked into; a longer way explains nothing.
LOOKED_INTO = 60


def path_to(
    network: Network, visible: NDArray[np.bool_], memory: int, hits: Set[int], concepts: Set[int], how: Walk
) -> tuple[Step, ...]:
    """From the query to just before the memory. Empty if it was not reached within two concepts."""
    ring = _by_weight(network, visible, memory, how)
    for concept in ring:
        if (start := _start_at(network, visible, concept, memory, hits, concepts)) is not None:
            return start
    looked = 0
    for concept in ring:
        for between in _memories_of(network, visible, concept, memory):
            looked += 1
            if looked > LOOKED_INTO:
                return ()
            for further in _by_weight(network, visible, between, how):
                start = _start_at(network, visible, further, between, hits, concepts) if further != concept else None
                if start is not None:
                    return (*start, ("memory", between), ("concept", concept))
    return ()


def _start_at(
    network: Network, visible: NDArray[np.bool_], concept: int, memory: int, hits: Set[int], concepts: Set[int]
) -> tuple[Step, ...] | None:
    """The way from the query to this concept, if it is named there or a hit mentions it."""
    if concept in concepts:
        return (("concept", concept),)
    for other in _memories_of(network, visible, concept, memory):
        if other in hits:
            return (("memory", other), ("concept", concept))
    return None


def _by_weight(network: Network, visible: NDArray[np.bool_], memory: int, how: Walk) -> list[int]:
    keys, _ = network.of_memory.of(memory)
    counts = network.of_concept.counts(keys)
    kept = keys[(counts > 1) & (counts <= HUB)]
    weights = weigh_concepts(network, visible, kept, how).weights
    order = np.argsort(-weights, kind="stable")
    return [int(kept[place]) for place in order if weights[place] > 0]


def _memories_of(network: Network, visible: NDArray[np.bool_], concept: int, but: int) -> list[int]:
    keys, _ = network.of_concept.of(concept)
    return [key for key in keys.tolist() if key != but and key < len(visible) and visible[key]]
