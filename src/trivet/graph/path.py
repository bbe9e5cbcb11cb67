"""How the walk reached a memory: a short path from the query over rare concepts, for people to read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trivet.graph.hubs import Hubs
from trivet.graph.network import Network, distinct
from trivet.graph.walk import Walk, weigh_concepts

# A stop on a path, in order from the query: ("concept", key) or ("memory", key).
Step = tuple[str, int]

# A path over two concepts is searched among the rarest concepts only, and among few memories of each.
CONCEPTS_TRIED = 8
MEMORIES_TRIED = 20


class Paths:
    """Paths of one query: from its own concepts, and from the hits that the walk started at, best first."""

    def __init__(
        self,
        network: Network,
        visible: NDArray[np.bool_],
        hits: Sequence[int],
        concepts: Sequence[int],
        ends: Sequence[int],
        how: Walk,
        hubs: Hubs | None = None,
    ) -> None:
        self._network = network
        self._visible = visible
        self._hits = hits
        self._named = set(concepts)
        self._found: dict[int, tuple[Step, ...]] = {}
        self._ends, self._how, self._hubs = ends, how, hubs or Hubs()

    def to(self, memory: int) -> tuple[Step, ...]:
        """The path from the query to just before the memory. Empty if none leads over at most two concepts."""
        if named := self._named_in(memory):
            return named
        ring = self._concepts_of(memory)
        for concept in ring:
            if start := self._start(concept, (memory,)):
                return start
        if by_link := self._by_link(memory):
            return by_link
        for concept in ring[:CONCEPTS_TRIED]:
            for between in self._memories_of(concept, memory)[:MEMORIES_TRIED]:
                keys, _ = self._network.of_memory.of(between)
                for further in keys.tolist():
                    if further != concept and (start := self._start(further, (memory, between))):
                        return (*start, ("memory", between), ("concept", concept))
        return ()

    def _by_link(self, memory: int) -> tuple[Step, ...]:
        linked = self._network.links.get(memory, ())
        hit = next((hit for hit in self._hits if hit in linked), None)
        return () if hit is None else (*self._named_in(hit), ("memory", hit))

    def _start(self, concept: int, but: Sequence[int]) -> tuple[Step, ...]:
        """From the query to this concept, if the query names it or a hit other than `but` mentions it."""
        if concept in self._named:
            return (("concept", concept),)
        hit = next((hit for hit in self._mentioned_by.get(concept, ()) if hit not in but), None)
        if hit is None:
            return ()
        return (*self._named_in(hit), ("memory", hit), ("concept", concept))

    def _named_in(self, memory: int) -> tuple[Step, ...]:
        """The rarest of the query's concepts that a memory mentions; empty if it mentions none."""
        if memory not in self._found:  # many paths lead over the same few hits
            keys, _ = self._network.of_memory.of(memory)
            named = [key for key in keys.tolist() if key in self._named]
            self._found[memory] = (("concept", min(named, key=self._mentions)),) if named else ()
        return self._found[memory]

    def _mentions(self, concept: int) -> int:
        return len(self._network.of_concept.of(concept)[0])

    def _concepts_of(self, memory: int) -> list[int]:
        """The concepts of a memory that the walk would follow, the rarest first."""
        return sorted(self._followed(memory), key=lambda key: (-self._weights[key], key))

    def _followed(self, memory: int) -> list[int]:
        keys, _ = self._network.of_memory.of(memory)
        return [key for key in keys.tolist() if key in self._weights]

    def _memories_of(self, concept: int, but: int) -> list[int]:
        keys, _ = self._network.of_concept.of(concept)
        return [key for key in keys.tolist() if key != but and key < len(self._visible) and self._visible[key]]

    @cached_property
    def _mentioned_by(self) -> dict[int, list[int]]:
        """The hits by each of their concepts, the best first."""
        found: dict[int, list[int]] = {}
        for hit in self._hits:
            for concept in self._followed(hit):
                found.setdefault(concept, []).append(hit)
        return found

    @cached_property
    def _weights(self) -> dict[int, float]:
        """Of the concepts that the walk would follow, for the memories whose path has to be searched: most mention
        what the query names, and those of long ones are many."""
        ends = [end for end in self._ends if not self._named_in(end)]
        mentioned = self._network.of_memory.gather(np.array(sorted({*self._hits, *ends}), np.int32))
        keys = distinct(mentioned.keys)
        others = self._network.of_concept.counts(keys) > 1
        keys = keys[others & ~self._hubs.among(self._network, self._visible, keys)]
        spread = weigh_concepts(self._network, self._visible, keys, self._how)
        followed = np.flatnonzero((spread.weights > 0) & (spread.mentions > 1))
        return dict(zip(keys[followed].tolist(), spread.weights[followed].tolist(), strict=True))
