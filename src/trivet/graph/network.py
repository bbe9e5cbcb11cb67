"""The graph in memory: mentions as flat arrays in both directions, and the hubs that walks skip.

Changes live in small dictionaries that override the arrays, so a write never rebuilds them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.common.bounded_cache import KIB, MIB, BoundedCache
from trivet.types import Filter

Keys = NDArray[np.int32]
Roles = NDArray[np.uint8]
Pair = tuple[Keys, Roles]

# With at most this many slots per key, a table is faster than sorting. For a few hundred of a
# million keys it takes 600 microseconds, sorting 20.
TABLE_SLOTS_PER_KEY = 40

# Rebuild when more nodes than this share and number have changed: walks then take twice as long.
# The maximum number of edges takes up to ten milliseconds.
COMPACT_SHARE = 1 / 32
COMPACT_MIN_NODES = 50
MAX_COMPACTED_EDGES = 100_000

_NONE: Pair = (np.zeros(0, np.int32), np.zeros(0, np.uint8))


class Neighbours(msgspec.Struct, frozen=True):
    """Neighbors of several nodes; `origins` are indexes of these nodes."""

    origins: NDArray[np.int64]
    keys: Keys
    roles: Roles


class Edges(msgspec.Struct, frozen=True):
    """Flat arrays: node n's edges are from `starts[n]` to `starts[n + 1]`."""

    starts: NDArray[np.int32]
    others: Keys
    roles: Roles

    @classmethod
    def of(cls, nodes: Keys, others: Keys, roles: Roles) -> Edges:
        order = np.lexsort((others, nodes))
        size = int(nodes.max()) + 1 if len(nodes) else 0
        return cls(_starts(nodes, size), others[order], roles[order])


class Adjacency:
    """One direction of the graph; `changed` overrides the arrays."""

    def __init__(self, edges: Edges) -> None:
        self.edges = edges
        self._size = len(edges.starts) - 1
        self._starts, self._others, self._roles = edges.starts, edges.others, edges.roles
        self.changed: dict[int, Pair] = {}
        # Marks changed nodes. The last entry is False, for nodes beyond.
        self._marked = np.zeros(self._size + 1, bool)

    def change(self, node: int, pair: Pair) -> None:
        """Replace a node's neighbors, safely for concurrent walks."""
        self.changed[node] = pair
        if node >= len(self._marked) - 1:
            grown = np.zeros(2 * node + 2, bool)
            grown[: len(self._marked)] = self._marked
            self._marked = grown
        self._marked[node] = True

    def of(self, node: int) -> Pair:
        if node in self.changed:
            return self.changed[node]
        if not 0 <= node < self._size:
            return _NONE
        start, stop = self._starts[node], self._starts[node + 1]
        return self._others[start:stop], self._roles[start:stop]

    def counts(self, nodes: Keys) -> NDArray[np.int64]:
        starts, ends = self._bounds(nodes)
        counts = (ends - starts).astype(np.int64)
        for place, node in self._changed_among(nodes):
            counts[place] = len(self.changed[node][0])
        return counts

    def gather(self, nodes: Keys) -> Neighbours:
        changed = self._changed_among(nodes)
        if not changed:
            return self._from_arrays(nodes)
        places = [place for place, _ in changed]
        unchanged = np.delete(np.arange(len(nodes)), places)
        base = self._from_arrays(nodes[unchanged])
        pairs = [self.changed[node] for _, node in changed]
        origins = np.repeat(places, [len(keys) for keys, _ in pairs])
        return Neighbours(
            np.concatenate([unchanged[base.origins], origins]),
            np.concatenate([base.keys, *(keys for keys, _ in pairs)]),
            np.concatenate([base.roles, *(roles for _, roles in pairs)]),
        )

    def compacted(self) -> Edges:
        size = max(self._size, max(self.changed, default=-1) + 1)
        every = self.gather(np.arange(size, dtype=np.int32))
        # stable: the neighbors of a node keep their order
        order = np.argsort(every.origins, kind="stable")
        return Edges(_starts(every.origins, size), every.keys[order], every.roles[order])

    def _changed_among(self, nodes: Keys) -> list[tuple[int, int]]:
        if not self.changed:
            return []
        places = self._marked.take(nodes, mode="clip").nonzero()[0]
        return list(zip(places.tolist(), nodes[places].tolist(), strict=True))

    def _bounds(self, nodes: Keys) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        return self._starts.take(nodes, mode="clip"), self._starts.take(nodes + 1, mode="clip")

    def _from_arrays(self, nodes: Keys) -> Neighbours:
        starts, stops = self._bounds(nodes)
        counts = stops - starts
        ends = counts.cumsum()  # offsets in the result
        rows = (stops - ends).repeat(counts)
        rows += np.arange(len(rows))
        return Neighbours(
            np.arange(len(nodes)).repeat(counts), self._others[rows], self._roles[rows]
        )

    @property
    def bytes(self) -> int:
        arrays = (
            self._starts.nbytes + self._others.nbytes + self._roles.nbytes + self._marked.nbytes
        )
        return arrays + sum(
            200 + keys.nbytes + roles.nbytes for keys, roles in self.changed.values()
        )


class Network:
    """Mentions in both directions, and links between memories."""

    def __init__(self, of_memory: Edges, of_concept: Edges, links: Mapping[int, Keys]) -> None:
        self.edges = len(of_memory.others)
        self.changes = 0  # changed memories since the network was built
        self.of_memory = Adjacency(of_memory)
        self.of_concept = Adjacency(of_concept)
        self.links = dict(links)

    @classmethod
    def of(cls, memories: Keys, concepts: Keys, roles: Roles, links: Mapping[int, Keys]) -> Network:
        return cls(Edges.of(memories, concepts, roles), Edges.of(concepts, memories, roles), links)

    def replace(self, mentions: Mapping[int, Pair], links: Mapping[int, Keys]) -> None:
        """Update some memories; deleted ones have no mentions.

        A concurrent walk sees each node before or after.
        """
        self.changes += len(mentions)
        for memory, (concepts, roles) in mentions.items():
            before, _ = self.of_memory.of(memory)
            self.of_memory.change(memory, (concepts, roles))
            self.edges += len(concepts) - len(before)
            now = dict(zip(concepts.tolist(), roles.tolist(), strict=True))
            for concept in {*before.tolist(), *now}:
                self.of_concept.change(
                    concept, _with(self.of_concept.of(concept), memory, now.get(concept))
                )
        for memory, others in links.items():
            if len(others):
                self.links[memory] = others
            else:
                self.links.pop(memory, None)

    def links_of(self, memories: Iterable[int]) -> tuple[list[int], list[int]]:
        places: list[int] = []
        others: list[int] = []
        if self.links:
            for place, memory in enumerate(memories):
                linked = self.links.get(memory)
                if linked is not None:
                    places += [place] * len(linked)
                    others += linked.tolist()
        return places, others

    @property
    def changed(self) -> int:
        return len(self.of_memory.changed) + len(self.of_concept.changed)

    @property
    def needs_compaction(self) -> bool:
        nodes = len(self.of_memory.edges.starts) + len(self.of_concept.edges.starts)
        return self.edges <= MAX_COMPACTED_EDGES and self.changed > max(
            COMPACT_MIN_NODES, COMPACT_SHARE * nodes
        )

    def compacted(self) -> Network:
        """Return an equal network without changes; running walks keep the old one."""
        return Network(self.of_memory.compacted(), self.of_concept.compacted(), self.links)

    @property
    def bytes(self) -> int:
        links = sum(100 + others.nbytes for others in self.links.values())
        return self.of_memory.bytes + self.of_concept.bytes + links


def _starts(nodes: NDArray[np.integer], size: int) -> NDArray[np.int32]:
    starts = np.zeros(size + 1, np.int32)
    np.cumsum(np.bincount(nodes, minlength=size), out=starts[1:])
    return starts


def _with(pair: Pair, memory: int, role: int | None) -> Pair:
    keys, roles = pair
    kept = keys != memory
    if role is None:
        return keys[kept], roles[kept]
    place = int(np.searchsorted(keys[kept], memory))
    return np.insert(keys[kept], place, memory), np.insert(roles[kept], place, role)


def unique_sorted(keys: Keys) -> Keys:
    """Avoid numpy's `unique`, whose import takes tens of milliseconds."""
    rising = np.sort(keys)
    return rising[_first_occurrences(rising)]


def unique_with_positions(keys: Keys) -> tuple[Keys, NDArray[np.int64]]:
    size = int(keys.max()) + 1 if len(keys) else 0
    return (
        _unique_by_table(keys, size)
        if size <= TABLE_SLOTS_PER_KEY * len(keys)
        else _unique_by_sorting(keys)
    )


def _unique_by_table(keys: Keys, size: int) -> tuple[Keys, NDArray[np.int64]]:
    is_there = np.zeros(size, bool)
    is_there[keys] = True
    found = is_there.nonzero()[0]
    places = np.empty(size, np.int64)  # pages are touched only where keys are
    places[found] = np.arange(len(found))
    return found.astype(np.int32), places[keys]


def _unique_by_sorting(keys: Keys) -> tuple[Keys, NDArray[np.int64]]:
    order = keys.argsort()
    rising = keys[order]
    firsts = _first_occurrences(rising)
    places = np.empty(len(keys), np.int64)
    places[order] = firsts.cumsum() - 1
    return rising[firsts], places


def _first_occurrences(rising: Keys) -> NDArray[np.bool_]:
    firsts = np.ones(len(rising), bool)
    np.not_equal(rising[1:], rising[:-1], out=firsts[1:])
    return firsts


def visible_mask(visible: NDArray[np.bool_], keys: Keys) -> NDArray[np.bool_]:
    """Return which memories are visible; those newer than the mask are not."""
    inside = keys < len(visible)
    if inside.all():
        return visible[keys]
    shown: NDArray[np.bool_] = inside & visible[np.where(inside, keys, 0)]
    return shown


# A concept that more visible memories mention passes almost nothing to each (docs/decisions/0010).
HUB_MENTIONS = 200
# About 500 hubs of one filter, and 64 recent filters.
COUNTS_BYTES = 128 * KIB
FILTERS_BYTES = 8 * MIB


class Hubs:
    """Hubs for one filter and one network object.

    Counts of visible mentions stay until changes could have brought one below the bound.
    """

    def __init__(self) -> None:
        # Visible mentions, and the network's `changes` when they were counted.
        self._counted: BoundedCache[int, tuple[int, int]] = BoundedCache(COUNTS_BYTES)

    def among(
        self, network: Network, visible: NDArray[np.bool_], concepts: Keys
    ) -> NDArray[np.bool_]:
        found = network.of_concept.counts(concepts) > HUB_MENTIONS
        if found.any():
            places = found.nonzero()[0]
            large = concepts[places].tolist()
            counts = {
                key: count
                for key in large
                if (count := self._still_known(network, key)) is not None
            }
            counts |= self._count(
                network, visible, [key for key in dict.fromkeys(large) if key not in counts]
            )
            found[places] = [counts[key] > HUB_MENTIONS for key in large]
        return found

    def _still_known(self, network: Network, concept: int) -> int | None:
        """Keep the count if it still decides: a change moves it by at most one."""
        count, changes = self._counted.get(concept) or (0, -1)
        return (
            count
            if changes == network.changes or count - (network.changes - changes) > HUB_MENTIONS
            else None
        )

    def _count(
        self, network: Network, visible: NDArray[np.bool_], concepts: list[int]
    ) -> dict[int, int]:
        if not concepts:
            return {}
        mentioned = network.of_concept.gather(np.array(concepts, np.int32))
        shown = visible_mask(visible, mentioned.keys)
        counts = np.bincount(mentioned.origins[shown], minlength=len(concepts)).tolist()
        for key, count in zip(concepts, counts, strict=True):
            self._counted.put(key, (count, network.changes))
        return dict(zip(concepts, counts, strict=True))


class HubsByFilter:
    def __init__(self) -> None:
        self._network: Network | None = None
        self._known = _no_hubs()

    def of(self, network: Network, filter: Filter) -> Hubs:
        if self._network is not network:
            self._network, self._known = network, _no_hubs()
        known = self._known
        hubs = known.get(filter)
        if hubs is None:
            hubs = Hubs()
            known.put(filter, hubs)
        return hubs


def _no_hubs() -> BoundedCache[Filter, Hubs]:
    return BoundedCache(
        FILTERS_BYTES, lambda hubs: COUNTS_BYTES
    )  # counted as full, because they grow
