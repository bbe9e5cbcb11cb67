"""The graph in memory: which concepts each memory mentions, and which memories mention each concept.

Both directions are flat arrays of five bytes a mention. Later changes are kept beside them in small dictionaries that
are looked at first, so a write costs its own mentions and never a rebuild.

Which concepts are hubs among the memories a caller may see: the walk does not follow them.

Counting the visible mentions of a concept that thousands mention costs more than the rest of the walk. So counts are
kept, and made again only if the changes since could have brought one below the bound.
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

# A table of all keys up to the highest is quicker than sorting as long as it has no more than so many for each key:
# for a few hundred keys of a million memories it takes 600 microseconds, and to sort them 20.
TABLE_SLOTS_PER_KEY = 40

# With more changed nodes than this share of all, and than so many, a walk mostly meets changed ones, which takes twice
# as long: then the arrays are made anew. Of so many edges that takes up to ten milliseconds.
COMPACT_SHARE = 1 / 32
COMPACT_MIN_NODES = 50
MAX_COMPACTED_EDGES = 100_000

_NONE: Pair = (np.zeros(0, np.int32), np.zeros(0, np.uint8))


class Neighbours(msgspec.Struct, frozen=True):
    """The neighbours of several nodes in one array: `origins` says to which of the nodes each belongs."""

    origins: NDArray[np.int64]
    keys: Keys
    roles: Roles


class Edges(msgspec.Struct, frozen=True):
    """One direction in flat arrays: node n's edges lie from `starts[n]` to `starts[n + 1]`."""

    starts: NDArray[np.int32]
    others: Keys
    roles: Roles

    @classmethod
    def of(cls, nodes: Keys, others: Keys, roles: Roles) -> Edges:
        order = np.lexsort((others, nodes))
        size = int(nodes.max()) + 1 if len(nodes) else 0
        return cls(_starts(nodes, size), others[order], roles[order])


class Adjacency:
    """One direction: from a node's key to the keys on the other side. Nodes that changed live in `changed`."""

    def __init__(self, edges: Edges) -> None:
        self.edges = edges
        self._size = len(edges.starts) - 1
        self._starts, self._others, self._roles = edges.starts, edges.others, edges.roles
        self.changed: dict[int, Pair] = {}
        # Which nodes are among these, so that a walk need not ask for each. Ends with False, for nodes beyond it.
        self._marked = np.zeros(self._size + 1, bool)

    def change(self, node: int, pair: Pair) -> None:
        """Marked last, so that a concurrent walk finds what is marked."""
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
        """Everything in flat arrays again."""
        size = max(self._size, max(self.changed, default=-1) + 1)
        every = self.gather(np.arange(size, dtype=np.int32))
        order = np.argsort(every.origins, kind="stable")  # those of one node keep their order
        return Edges(_starts(every.origins, size), every.keys[order], every.roles[order])

    def _changed_among(self, nodes: Keys) -> list[tuple[int, int]]:
        if not self.changed:
            return []
        places = self._marked.take(nodes, mode="clip").nonzero()[0]
        return list(zip(places.tolist(), nodes[places].tolist(), strict=True))

    def _bounds(self, nodes: Keys) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Where the edges of each begin and end; a node beyond the arrays has none, at their end."""
        return self._starts.take(nodes, mode="clip"), self._starts.take(nodes + 1, mode="clip")

    def _from_arrays(self, nodes: Keys) -> Neighbours:
        starts, stops = self._bounds(nodes)
        counts = stops - starts
        ends = counts.cumsum()  # in the arrays that are made here
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
    """The mentions from both sides, and the links between memories."""

    def __init__(self, of_memory: Edges, of_concept: Edges, links: Mapping[int, Keys]) -> None:
        """Of the same mentions in both directions."""
        self.edges = len(of_memory.others)
        self.changes = 0  # how many memories have changed since it was made
        self.of_memory = Adjacency(of_memory)
        self.of_concept = Adjacency(of_concept)
        self.links = dict(links)

    @classmethod
    def of(cls, memories: Keys, concepts: Keys, roles: Roles, links: Mapping[int, Keys]) -> Network:
        """Of mentions in any order: which memory mentions which concept, in which role."""
        return cls(Edges.of(memories, concepts, roles), Edges.of(concepts, memories, roles), links)

    def replace(self, mentions: Mapping[int, Pair], links: Mapping[int, Keys]) -> None:
        """Updates some memories to their present state; deleted ones have no mentions.

        Arrays are replaced and never changed in place, so a concurrent walk sees each node as it was or as it is.
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
        """For each link of these memories: the memory's place among them, and the linked memory."""
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
        """How many nodes have changed since the arrays were made."""
        return len(self.of_memory.changed) + len(self.of_concept.changed)

    @property
    def needs_compaction(self) -> bool:
        """Whether so much has changed since the arrays were made that walks are slower for it."""
        nodes = len(self.of_memory.edges.starts) + len(self.of_concept.edges.starts)
        return self.edges <= MAX_COMPACTED_EDGES and self.changed > max(
            COMPACT_MIN_NODES, COMPACT_SHARE * nodes
        )

    def compacted(self) -> Network:
        """The same as if it had been built from what is there now. A walk under way keeps what it started with."""
        return Network(self.of_memory.compacted(), self.of_concept.compacted(), self.links)

    @property
    def bytes(self) -> int:
        links = sum(100 + others.nbytes for others in self.links.values())
        return self.of_memory.bytes + self.of_concept.bytes + links


def _starts(nodes: NDArray[np.integer], size: int) -> NDArray[np.int32]:
    """Where the edges of each node begin, and where those of the last end."""
    starts = np.zeros(size + 1, np.int32)
    np.cumsum(np.bincount(nodes, minlength=size), out=starts[1:])
    return starts


def _with(pair: Pair, memory: int, role: int | None) -> Pair:
    """A concept's memories with this one in its new role, or without it if it mentions the concept no more."""
    keys, roles = pair
    kept = keys != memory
    if role is None:
        return keys[kept], roles[kept]
    place = int(np.searchsorted(keys[kept], memory))
    return np.insert(keys[kept], place, memory), np.insert(roles[kept], place, role)


def unique_sorted(keys: Keys) -> Keys:
    """Each key once, rising. numpy's `unique` would load its module of masked arrays: tens of milliseconds."""
    rising = np.sort(keys)
    return rising[_firsts(rising)]


def unique_with_positions(keys: Keys) -> tuple[Keys, NDArray[np.int64]]:
    """Each key once, rising, and at which place there each of these stands."""
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
    places = np.empty(size, np.int64)  # its memory is only touched where keys are
    places[found] = np.arange(len(found))
    return found.astype(np.int32), places[keys]


def _unique_by_sorting(keys: Keys) -> tuple[Keys, NDArray[np.int64]]:
    order = keys.argsort()
    rising = keys[order]
    firsts = _firsts(rising)
    places = np.empty(len(keys), np.int64)
    places[order] = firsts.cumsum() - 1
    return rising[firsts], places


def _firsts(rising: Keys) -> NDArray[np.bool_]:
    """Where each key stands for the first time."""
    firsts = np.ones(len(rising), bool)
    np.not_equal(rising[1:], rising[:-1], out=firsts[1:])
    return firsts


def visible_mask(visible: NDArray[np.bool_], keys: Keys) -> NDArray[np.bool_]:
    """Which of these memories are visible. A memory newer than the mask is not."""
    inside = keys < len(visible)
    if inside.all():
        return visible[keys]
    shown: NDArray[np.bool_] = inside & visible[np.where(inside, keys, 0)]
    return shown


# A concept that more visible memories mention passes on next to nothing to each (docs/decisions/0010).
HUB_MENTIONS = 200
# For the counts of one filter, some 500 hubs, and for those of all filters together, some 64 of the latest.
COUNTS_BYTES = 128 * KIB
FILTERS_BYTES = 8 * MIB


class Hubs:
    """The hubs for one filter. Kept from walk to walk, as long as the network is the same object."""

    def __init__(self) -> None:
        # Of a concept, the visible mentions, and the network's changes by then.
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
        """The kept count if it still decides: each change since took away or added one mention at most."""
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
    """The hubs of each of the latest filters; dropped when the network is another one."""

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
    )  # counted as full, since they grow
