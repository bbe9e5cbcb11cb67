"""The walk, a personalized PageRank by local push, and paths that explain its results.

It starts at the best hits and the query's concepts. Each round pushes mass from memories through
their concepts, rare ones most, to other memories. The result is the mass that arrived, so a seed
gains only if other seeds lead to it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.common.bounded_cache import MIB, cached
from trivet.graph.concepts import ROLES
from trivet.graph.network import (
    Hubs,
    Keys,
    Neighbours,
    Network,
    Roles,
    unique_sorted,
    unique_with_positions,
    visible_mask,
)

Mass = NDArray[np.float64]

# Bounds of a walk; looser ones change nothing in the third decimal (docs/decisions/0010).
ROUNDS = 2
MAX_PUSHED_MEMORIES = 50
MIN_MASS_SHARE = 1e-3
# Rarest concepts first; only texts of thousands of words have more (docs/decisions/0010).
MAX_MENTIONS_PER_ROUND = 10_000
# A name stands capitalized within sentences at least this often per capital at a start.
MIN_SURE_RATIO = 0.2
# Equals the weight of a concept that only these two memories mention.
LINK_WEIGHT = 0.6

POWERS_BYTES = MIB

# Avoids division by zero.
MIN_PULL = 1e-9

_MAYBE = ROLES.index("maybe")
_ABOUT = ROLES.index("about")


class WalkParameters(msgspec.Struct, frozen=True, kw_only=True):
    """Constants of the walk, chosen in docs/decisions/0010."""

    seeds: float = 10  # number of hits to start from
    sharpness: float = 3.0  # how much more the first hits start with than the last
    hits: float = 0.85  # share of the start for the hits; the query's concepts get the rest
    onward: float = 0.7  # share of arriving mass that is passed on
    rare: float = 0.75  # a concept in n memories passes on n to the power of minus this
    rest: float = 0.5  # weight of staying, relative to the weights of a memory's concepts
    about: float = 6.0  # factor for concepts a memory is about, relative to those it mentions
    named: float = 0.3  # weight of the query's concepts at which the walk has half its strength
    even: float = 0.25  # a memory with n concepts draws n to the power of minus this from each


class ConceptWeights(msgspec.Struct, frozen=True):
    """Weights of concepts, counts of visible mentions, and memories' shares."""

    weights: Mass
    mentions: NDArray[np.int64]
    pull: Mass
    memories: Neighbours
    shares: Mass


class NodeMasses(msgspec.Struct, frozen=True):
    keys: Keys
    values: Mass


def walk(
    network: Network,
    visible: NDArray[np.bool_],
    hits: NodeMasses,
    concepts: NodeMasses,
    how: WalkParameters,
    hubs: Hubs | None = None,
) -> NodeMasses:
    """Return the mass that arrives at visible memories from `hits` and `concepts`."""
    hubs = hubs or Hubs()
    least = MIN_MASS_SHARE * float(hits.values.sum() + concepts.values.sum())
    reached = _from_concepts(network, visible, concepts, how)
    arrived = [reached]
    pushing = hits
    for number in range(ROUNDS):
        passed_on, returned = _push(network, visible, pushing, how, hubs)
        arrived.append(passed_on)
        if number == 0:
            arrived.append(NodeMasses(pushing.keys, -returned))
            passed_on = _added([reached, passed_on])
        pushing = _heaviest(passed_on, least)
    total = _added(arrived)
    return NodeMasses(total.keys, np.maximum(total.values, 0.0))


def weigh_concepts(
    network: Network, visible: NDArray[np.bool_], concepts: Keys, how: WalkParameters
) -> ConceptWeights:
    memories = _shown(visible, network.of_concept.gather(concepts))
    count = len(concepts)
    mentions = np.bincount(memories.origins, minlength=count)
    maybe = np.bincount(memories.origins[memories.roles == _MAYBE], minlength=count)
    sure = mentions - maybe
    is_name = (sure > 0) & (sure > MIN_SURE_RATIO * maybe)
    weights = np.where(is_name, _powers(mentions, -how.rare), 0.0)
    pulls = _edge_weights(network, memories.keys, memories.roles, how)
    pull = np.maximum(_sums(memories.origins, pulls, count), MIN_PULL)
    return ConceptWeights(weights, mentions, pull, memories, pulls / pull[memories.origins])


def _shown(visible: NDArray[np.bool_], found: Neighbours) -> Neighbours:
    shown = visible_mask(visible, found.keys)
    return found if shown.all() else _some(found, shown.nonzero()[0])


def _some(found: Neighbours, places: NDArray[np.int64]) -> Neighbours:
    return Neighbours(found.origins[places], found.keys[places], found.roles[places])


def _edge_weights(network: Network, memories: Keys, roles: Roles, how: WalkParameters) -> Mass:
    """Draw less from each concept of a memory with many, which every walk would reach."""
    pulls = np.where(roles == _ABOUT, how.about, 1.0)
    return pulls * _powers(network.of_memory.counts(memories), -how.even) if how.even else pulls


def _powers(counts: NDArray[np.int64], exponent: float) -> Mass:
    return _powers_up_to(int(counts.max(initial=0)).bit_length(), exponent)[counts]


@cached(POWERS_BYTES)
def _powers_up_to(bits: int, exponent: float) -> Mass:
    table: Mass = np.maximum(np.arange(1 << bits), 1) ** exponent
    return table


def _push(
    network: Network, visible: NDArray[np.bool_], at: NodeMasses, how: WalkParameters, hubs: Hubs
) -> tuple[NodeMasses, Mass]:
    """Return the mass passed on, and how much returns to each memory."""
    mentioned, concepts, place = _shared(network, visible, network.of_memory.gather(at.keys), hubs)
    spread = weigh_concepts(network, visible, concepts, how)
    weights = np.where(spread.mentions > 1, spread.weights, 0.0)[place]
    origins, linked = _links(network, visible, at.keys)
    count = len(at.keys)
    total = (
        how.rest
        + _sums(mentioned.origins, weights, count)
        + LINK_WEIGHT * np.bincount(origins, minlength=count)
    )
    flow = how.onward * at.values[mentioned.origins] * weights / total[mentioned.origins]
    through_concepts = _pass_to_memories(spread, how.onward * _sums(place, flow, len(concepts)))
    through_links = _masses(
        linked, how.onward**2 * at.values[origins] * LINK_WEIGHT / total[origins]
    )
    own = (
        _edge_weights(network, at.keys[mentioned.origins], mentioned.roles, how)
        / spread.pull[place]
    )
    return _added([through_concepts, through_links]), _sums(
        mentioned.origins, how.onward * flow * own, count
    )


def _from_concepts(
    network: Network, visible: NDArray[np.bool_], at: NodeMasses, how: WalkParameters
) -> NodeMasses:
    return _pass_to_memories(weigh_concepts(network, visible, at.keys, how), how.onward * at.values)


def _pass_to_memories(spread: ConceptWeights, at_concepts: Mass) -> NodeMasses:
    return _masses(spread.memories.keys, at_concepts[spread.memories.origins] * spread.shares)


def _links(
    network: Network, visible: NDArray[np.bool_], memories: Keys
) -> tuple[NDArray[np.int64], Keys]:
    places, others = network.links_of(memories.tolist())
    linked = np.array(others, np.int32)
    shown = visible_mask(visible, linked).nonzero()[0]
    return np.array(places, np.int64)[shown], linked[shown]


def _added(parts: list[NodeMasses]) -> NodeMasses:
    parts = [part for part in parts if len(part.keys)] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    return _masses(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.values for part in parts]),
    )


def _masses(keys: Keys, values: Mass) -> NodeMasses:
    """Sum in key order, so that equal parts give exactly equal sums."""
    found, place = unique_with_positions(keys)
    return NodeMasses(found, _sums(place, values, len(found)))


def _sums(places: NDArray[np.int64], values: Mass, count: int) -> Mass:
    # Without any value, numpy would count in integers.
    return np.bincount(places, weights=values, minlength=count).astype(np.float64, copy=False)


def _shared(
    network: Network, visible: NDArray[np.bool_], mentioned: Neighbours, hubs: Hubs
) -> tuple[Neighbours, Keys, NDArray[np.int64]]:
    """Return mentions of followed concepts, the concepts, and indexes into these."""
    concepts, place = unique_with_positions(mentioned.keys)
    followed = _followed(network, visible, concepts, hubs)
    kept = followed[place].nonzero()[0]
    return _some(mentioned, kept), concepts[followed], (followed.cumsum() - 1)[place[kept]]


def _followed(
    network: Network, visible: NDArray[np.bool_], concepts: Keys, hubs: Hubs
) -> NDArray[np.bool_]:
    counts = network.of_concept.counts(concepts)
    followed: NDArray[np.bool_] = (counts > 1) & ~hubs.among(network, visible, concepts)
    if counts[followed].sum() > MAX_MENTIONS_PER_ROUND:
        places = followed.nonzero()[0]
        rarest = places[
            np.argsort(counts[places], kind="stable")
        ]  # stable: of equal counts, those of lower keys
        followed[rarest[counts[rarest].cumsum() > MAX_MENTIONS_PER_ROUND]] = False
    return followed


def _heaviest(reached: NodeMasses, least: float) -> NodeMasses:
    found = (reached.values > least).nonzero()[0]
    if len(found) > MAX_PUSHED_MEMORIES:
        # Stable: the same graph always gives the same walk.
        found = np.sort(
            found[np.argsort(-reached.values[found], kind="stable")[:MAX_PUSHED_MEMORIES]]
        )
    return NodeMasses(reached.keys[found], reached.values[found])


# A stop of a path from the query: ("concept", key) or ("memory", key).
Step = tuple[str, int]

# Bounds of the search for a path over two concepts.
MAX_CONCEPTS_TRIED = 8
MAX_MEMORIES_TRIED = 20


class Paths:
    """Short paths from a query to its hits; `hits` are the walk's seeds, best first."""

    def __init__(
        self,
        network: Network,
        visible: NDArray[np.bool_],
        hits: Sequence[int],
        concepts: Sequence[int],
        ends: Sequence[int],
        how: WalkParameters,
        hubs: Hubs | None = None,
    ) -> None:
        self._network = network
        self._visible = visible
        self._hits = hits
        self._named = set(concepts)
        self._found: dict[int, tuple[Step, ...]] = {}
        self._ends, self._how, self._hubs = ends, how, hubs or Hubs()

    def to(self, memory: int) -> tuple[Step, ...]:
        """Return the path before the memory; empty if it needs more than two concepts."""
        if named := self._named_in(memory):
            return named
        ring = self._concepts_of(memory)
        for concept in ring:
            if start := self._start(concept, (memory,)):
                return start
        if by_link := self._by_link(memory):
            return by_link
        for concept in ring[:MAX_CONCEPTS_TRIED]:
            for between in self._memories_of(concept, memory)[:MAX_MEMORIES_TRIED]:
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
        if concept in self._named:
            return (("concept", concept),)
        hit = next((hit for hit in self._mentioned_by.get(concept, ()) if hit not in but), None)
        if hit is None:
            return ()
        return (*self._named_in(hit), ("memory", hit), ("concept", concept))

    def _named_in(self, memory: int) -> tuple[Step, ...]:
        if memory not in self._found:  # cached, because many paths share the same few hits
            keys, _ = self._network.of_memory.of(memory)
            named = [key for key in keys.tolist() if key in self._named]
            self._found[memory] = (("concept", min(named, key=self._mentions)),) if named else ()
        return self._found[memory]

    def _mentions(self, concept: int) -> int:
        return len(self._network.of_concept.of(concept)[0])

    def _concepts_of(self, memory: int) -> list[int]:
        return sorted(self._followed(memory), key=lambda key: (-self._weights[key], key))

    def _followed(self, memory: int) -> list[int]:
        keys, _ = self._network.of_memory.of(memory)
        return [key for key in keys.tolist() if key in self._weights]

    def _memories_of(self, concept: int, but: int) -> list[int]:
        keys, _ = self._network.of_concept.of(concept)
        return [
            key
            for key in keys.tolist()
            if key != but and key < len(self._visible) and self._visible[key]
        ]

    @cached_property
    def _mentioned_by(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for hit in self._hits:
            for concept in self._followed(hit):
                found.setdefault(concept, []).append(hit)
        return found

    @cached_property
    def _weights(self) -> dict[int, float]:
        """Weigh followed concepts of the few memories whose path must be searched."""
        ends = [end for end in self._ends if not self._named_in(end)]
        mentioned = self._network.of_memory.gather(np.array(sorted({*self._hits, *ends}), np.int32))
        keys = unique_sorted(mentioned.keys)
        others = self._network.of_concept.counts(keys) > 1
        keys = keys[others & ~self._hubs.among(self._network, self._visible, keys)]
        spread = weigh_concepts(self._network, self._visible, keys, self._how)
        followed = np.flatnonzero((spread.weights > 0) & (spread.mentions > 1))
        return dict(zip(keys[followed].tolist(), spread.weights[followed].tolist(), strict=True))
