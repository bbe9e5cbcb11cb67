"""The concept graph as recalls walk it: in memory, kept fresh by the record of changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from trivet.graph.hubs import HubsByFilter
from trivet.graph.path import Paths, Step
from trivet.graph.walk import Masses, Walk, walk, weigh_concepts
from trivet.memory_fields import as_json
from trivet.store.records import Named, Seeds
from trivet.store.relational.changes import Changes
from trivet.store.relational.database import StoreDatabase
from trivet.store.relational.graph_cache import GraphCache
from trivet.store.relational.ids import Ids
from trivet.store.relational.readings import Readings
from trivet.store.relational.visibility import Visibility
from trivet.types import Candidate, Filter, PathStep

# Less than this cannot lift a memory by a single place.
LEAST_MASS = 1e-6


class GraphIndex(Readings):
    """Walks the graph that `Readings` writes."""

    def __init__(self, database: StoreDatabase, visibility: Visibility, changes: Changes, ids: Ids) -> None:
        super().__init__(database, changes)
        self._visibility = visibility
        self._ids = ids
        self._network = GraphCache(database, changes)
        self._hubs = HubsByFilter()

    def named(self, forms: Sequence[str], filter: Filter, how: Walk) -> tuple[Named, ...]:
        """The concepts known by these forms, as far as visible memories mention them."""
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
            Named(concept, name, int(count), float(weight))
            for (name, concept), count, weight in zip(found, spread.mentions, spread.weights, strict=True)
            if weight > 0
        )

    def walk(self, seeds: Seeds, filter: Filter, how: Walk, depth: int) -> list[Candidate]:
        """The memories that most arrives at; the score is the square root of what arrived, so that few do not swamp."""
        network, visible = self._network.fresh(), self._visibility.of(filter).mask
        hubs = self._hubs.of(network, filter)
        mass = walk(network, visible, self._hits(seeds.memories), _masses(seeds.concepts), how, hubs)
        found = np.flatnonzero(mass.values > LEAST_MASS)
        if len(found) > depth:
            cut = np.partition(mass.values[found], len(found) - depth)[len(found) - depth]
            found = found[mass.values[found] >= cut]  # everything tied at the cut stays until ids decide
        keys, scores = mass.keys[found].tolist(), np.minimum(np.sqrt(mass.values[found]), 1.0).tolist()
        ids = self._ids.of(keys)
        ranked = [Candidate(id=ids[key], score=score) for key, score in zip(keys, scores, strict=True) if key in ids]
        ranked.sort(key=lambda candidate: (-candidate.score, candidate.id))
        return ranked[:depth]

    def paths(self, ids: Sequence[str], seeds: Seeds, filter: Filter, how: Walk) -> dict[str, tuple[PathStep, ...]]:
        network, visible = self._network.fresh(), self._visibility.of(filter).mask
        keys = self._ids.keys([*ids, *seeds.memories])
        best_first = sorted(seeds.memories, key=lambda id: -seeds.memories[id])
        hits = [keys[id] for id in best_first if id in keys]
        ends = {id: keys[id] for id in ids if id in keys}
        paths = Paths(
            network, visible, hits, sorted(seeds.concepts), list(ends.values()), how, self._hubs.of(network, filter)
        )
        found = {id: steps for id, key in ends.items() if (steps := paths.to(key))}
        return self._spelled_out(found, list(ends.values()))

    def behind(self) -> bool:
        """Whether recalls still walk the graph of before a bulk change."""
        return self._network.behind

    def _hits(self, seeds: Mapping[str, float]) -> Masses:
        keys = self._ids.keys(list(seeds))
        return _masses({keys[id]: share for id, share in seeds.items() if id in keys})

    def _spelled_out(
        self, paths: Mapping[str, tuple[Step, ...]], ends: Sequence[int]
    ) -> dict[str, tuple[PathStep, ...]]:
        """Concepts as the memories on the paths write them: how others write them is not for the caller to know."""
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


def _masses(seeds: Mapping[int, float]) -> Masses:
    keys = sorted(seeds)
    return Masses(np.array(keys, np.int32), np.array([seeds[key] for key in keys], np.float64))
