"""The concept graph that recalls walk, kept in memory and updated from the change log."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from trivet.errors import StoreError
from trivet.graph.network import HubsByFilter, Keys, Network, Pair
from trivet.graph.walk import NodeMasses, Paths, Step, WalkParameters, walk, weigh_concepts
from trivet.memory_fields import as_json
from trivet.store.records import NamedConcept, WalkSeeds
from trivet.store.relational.changes import MAX_CHANGES_APPLIED, Changes
from trivet.store.relational.database import Database, StoreDatabase, StorePart
from trivet.store.relational.ids import Ids
from trivet.store.relational.index.extraction_queue import ExtractionQueue
from trivet.store.relational.index.visibility import Visibility
from trivet.types import Candidate, Filter, PathStep

# A recall applies up to this many changes itself, in milliseconds; a thread applies more.
MAX_INLINE_CHANGES = 500
REBUILD_AFTER_CHANGED_NODES = 50_000


class GraphCache(StorePart):
    file = "graph"

    _database: StoreDatabase

    def __init__(self, database: StoreDatabase, changes: Changes) -> None:
        super().__init__(database)
        self._changes = changes
        self._network: Network | None = None
        self._sequence = 0
        self._lock = threading.Lock()
        self._renewal: threading.Thread | None = None

    def fresh(self) -> Network:
        """Return the network, or the old one until a thread has reloaded after a bulk change."""
        with self._lock:
            at_once = MAX_INLINE_CHANGES
            if self._network is None:
                self._sequence, self._network = self._load(MAX_CHANGES_APPLIED)
                at_once = MAX_CHANGES_APPLIED
            changed = self._changes.since(self._sequence)
            if (
                changed is None
                or len(changed) > at_once
                or self._network.changed > REBUILD_AFTER_CHANGED_NODES
            ):
                self._renew()
            elif changed:
                self._apply_changes({key for _, key in changed})
                self._sequence = changed[-1][0]
                if self._network.needs_compaction:
                    self._network = self._network.compacted()
            return self._network

    @property
    def behind(self) -> bool:
        """Whether recalls walk the network from before a bulk change."""
        with self._lock:
            return self._network is not None and self._sequence < self._changes.last()

    def wait(self) -> None:
        renewal = self._renewal
        if renewal is not None:
            renewal.join()

    def _renew(self) -> None:
        if self._renewal is None or not self._renewal.is_alive():
            self._renewal = threading.Thread(target=self._replace, name="trivet-graph", daemon=True)
            self._renewal.start()

    def _replace(self) -> None:
        try:
            sequence, network = self._load()
        except StoreError:  # closed or failing; the next recall retries, `behind` until then
            return
        with self._lock:
            self._sequence, self._network = sequence, network

    def _load(self, most_behind: int = MAX_INLINE_CHANGES) -> tuple[int, Network]:
        mapped = self._database.mapped_index()
        if mapped is not None and self._changes_behind(mapped.sequence) <= most_behind:
            return mapped.sequence, mapped.network()
        # Before the rows: applying concurrent commits twice does no harm.
        sequence = self._changes.last()
        return sequence, read_network(self._database)

    def _changes_behind(self, sequence: int) -> float:
        changed = self._changes.since(sequence)
        return math.inf if changed is None else len(changed)

    def _apply_changes(self, keys: set[int]) -> None:
        assert self._network is not None
        rows = self._rows("mentions_of", keys=as_json(keys))
        links = self._rows("links_of", keys=as_json(keys))
        mentions: dict[int, list[tuple[int, int]]] = {key: [] for key in keys}
        for row in rows:
            mentions[row["memory"]].append((row["concept"], row["role"]))
        linked = _symmetric((row[0], row[1]) for row in links)
        nothing = np.zeros(0, np.int32)
        self._network.replace(
            {key: _pair(found) for key, found in mentions.items()},
            {key: linked.get(key, nothing) for key in keys},
        )


def read_network(database: Database) -> Network:
    sql = database.sql("graph")
    packed = database.integers(sql["all_mentions"])
    with database.errors():
        links = database.read().execute(sql["all_links"]).fetchall()
    memories, concepts = (
        (packed >> 30).astype(np.int32),
        ((packed >> 2) & 0xFFFFFFF).astype(np.int32),
    )
    roles = (packed & 3).astype(np.uint8)
    return Network.of(memories, concepts, roles, _symmetric((row[0], row[1]) for row in links))


def _pair(found: list[tuple[int, int]]) -> Pair:
    return np.array([concept for concept, _ in found], np.int32), np.array(
        [role for _, role in found], np.uint8
    )


def _symmetric(links: Iterable[tuple[int, int]]) -> dict[int, Keys]:
    linked: dict[int, set[int]] = {}
    for source, target in links:
        linked.setdefault(source, set()).add(target)
        linked.setdefault(target, set()).add(source)
    return {key: np.array(sorted(others), np.int32) for key, others in linked.items()}


# A smaller mass cannot move a memory by a rank.
MIN_MASS = 1e-6


class GraphIndex(ExtractionQueue):
    def __init__(
        self, database: StoreDatabase, visibility: Visibility, changes: Changes, ids: Ids
    ) -> None:
        super().__init__(database, changes)
        self._visibility = visibility
        self._ids = ids
        self._network = GraphCache(database, changes)
        self._hubs = HubsByFilter()

    def named(
        self, forms: Sequence[str], filter: Filter, how: WalkParameters
    ) -> tuple[NamedConcept, ...]:
        rows = self._rows("concepts_of_forms", forms=as_json(forms))
        found = [(row[0], row[1]) for row in rows if row[1] is not None]
        if not found:
            return ()
        network, visible = self._network.fresh(), self._visibility.of(filter).mask
        concepts = np.array([concept for _, concept in found], np.int32)
        hubs = self._hubs.of(network, filter).among(network, visible, concepts)
        found = [pair for pair, is_hub in zip(found, hubs.tolist(), strict=True) if not is_hub]
        spread = weigh_concepts(network, visible, concepts[~hubs], how)
        return tuple(
            NamedConcept(concept, name, int(count), float(weight))
            for (name, concept), count, weight in zip(
                found, spread.mentions, spread.weights, strict=True
            )
            if weight > 0
        )

    def walk(
        self, seeds: WalkSeeds, filter: Filter, how: WalkParameters, depth: int
    ) -> list[Candidate]:
        """Score by the square root of the mass, so that few memories do not dominate."""
        network, visible = self._network.fresh(), self._visibility.of(filter).mask
        hubs = self._hubs.of(network, filter)
        mass = walk(
            network, visible, self._hits(seeds.memories), _masses(seeds.concepts), how, hubs
        )
        found = np.flatnonzero(mass.values > MIN_MASS)
        if len(found) > depth:
            cut = np.partition(mass.values[found], len(found) - depth)[len(found) - depth]
            found = found[mass.values[found] >= cut]  # keep ties; the ids decide
        keys, scores = (
            mass.keys[found].tolist(),
            np.minimum(np.sqrt(mass.values[found]), 1.0).tolist(),
        )
        ids = self._ids.of(keys)
        ranked = [
            Candidate(id=ids[key], score=score)
            for key, score in zip(keys, scores, strict=True)
            if key in ids
        ]
        ranked.sort(key=lambda candidate: (-candidate.score, candidate.id))
        return ranked[:depth]

    def paths(
        self, ids: Sequence[str], seeds: WalkSeeds, filter: Filter, how: WalkParameters
    ) -> dict[str, tuple[PathStep, ...]]:
        network, visible = self._network.fresh(), self._visibility.of(filter).mask
        keys = self._ids.keys([*ids, *seeds.memories])
        best_first = sorted(seeds.memories, key=lambda id: -seeds.memories[id])
        hits = [keys[id] for id in best_first if id in keys]
        ends = {id: keys[id] for id in ids if id in keys}
        paths = Paths(
            network,
            visible,
            hits,
            sorted(seeds.concepts),
            list(ends.values()),
            how,
            self._hubs.of(network, filter),
        )
        found = {id: steps for id, key in ends.items() if (steps := paths.to(key))}
        return self._spelled_out(found, list(ends.values()))

    def behind(self) -> bool:
        return self._network.behind

    def _hits(self, seeds: Mapping[str, float]) -> NodeMasses:
        keys = self._ids.keys(list(seeds))
        return _masses({keys[id]: share for id, share in seeds.items() if id in keys})

    def _spelled_out(
        self, paths: Mapping[str, tuple[Step, ...]], ends: Sequence[int]
    ) -> dict[str, tuple[PathStep, ...]]:
        """Label concepts as memories on the paths do: other spellings stay hidden."""
        steps = [step for path in paths.values() for step in path]
        between = [key for kind, key in steps if kind == "memory"]
        ids = self._ids.of(between)
        concepts = {key for kind, key in steps if kind == "concept"}
        wanted = {"concepts": as_json(concepts), "memories": as_json([*between, *ends])}
        labels = {row[0]: row[1] for row in self._rows("labels", **wanted)}
        return {
            id: tuple(
                PathStep(kind="concept", name=labels[key])
                if kind == "concept"
                else PathStep(kind="memory", name=ids[key])
                for kind, key in path
            )
            for id, path in paths.items()
            if all((labels if kind == "concept" else ids).get(key) for kind, key in path)
        }


def _masses(seeds: Mapping[int, float]) -> NodeMasses:
    keys = sorted(seeds)
    return NodeMasses(np.array(keys, np.int32), np.array([seeds[key] for key in keys], np.float64))
