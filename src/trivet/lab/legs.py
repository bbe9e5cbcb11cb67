"""Rankings kept from one recipe to the next: many fusions cost one retrieval."""

from __future__ import annotations

import msgspec

from trivet.analyse import Question
from trivet.errors import LegFailed
from trivet.memory.engine import Engine
from trivet.memory.recall import Retrieved, retrieve, walk_on
from trivet.search.recipe import Recipe
from trivet.types import Filter, LegHealth, Ranking

# Legs are asked this deep once; a recipe of lesser depth takes the head of it, which is what it would have got.
KEPT_DEPTH = 100


class CachedLegs:
    """Retrieves each leg through the real path on first need."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], Retrieved] = {}

    def retrieve(self, engine: Engine, question: Question, filter: Filter, recipe: Recipe) -> Retrieved:
        parts = [self._leg(engine, question, filter, recipe, leg) for leg in recipe.legs if leg != "graph"]
        if "graph" in recipe.legs:
            parts.append(self._walk(engine, question, filter, recipe, parts))
        rankings = [_head(ranking, recipe.depth) for part in parts for ranking in part.rankings]
        health = [leg for part in parts for leg in part.health]
        notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
        seeds = next((part.seeds for part in parts if part.seeds is not None), None)
        return Retrieved(rankings, health, notes, any(part.narrowed for part in parts), seeds)

    def leg_times(self, leg: str) -> list[float]:
        """How long each retrieval of a leg took, in milliseconds."""
        return [health.took_ms for part in self._kept.values() for health in part.health if health.leg == leg]

    def _leg(self, engine: Engine, question: Question, filter: Filter, recipe: Recipe, leg: str) -> Retrieved:
        how = (recipe.match, recipe.bm25) if leg == "lexical" else ()
        depth = max(recipe.depth, KEPT_DEPTH)
        name = (leg, question.text, filter, depth, *how)
        if name not in self._kept:
            alone = msgspec.structs.replace(recipe, legs=(leg,), depth=depth)
            self._kept[name] = _answered(retrieve(engine, question, filter, alone))
        return self._kept[name]

    def _walk(
        self, engine: Engine, question: Question, filter: Filter, recipe: Recipe, parts: list[Retrieved]
    ) -> Retrieved:
        """The walk starts from the other legs' hits, so it is kept for each way of getting them."""
        if any(part.narrowed for part in parts):
            return Retrieved([], [])
        how = (recipe.match, recipe.bm25, recipe.walk, recipe.legs)
        name = ("graph", question.text, filter, recipe.depth, *how)
        if name not in self._kept:
            seeds = Retrieved([_head(ranking, recipe.depth) for part in parts for ranking in part.rankings], [])
            walked = _answered(walk_on(engine, question, filter, recipe, seeds))
            graph = [ranking for ranking in walked.rankings if ranking.leg == "graph"]
            self._kept[name] = Retrieved(graph, walked.health, seeds=walked.seeds)
        return self._kept[name]


def _answered(retrieved: Retrieved) -> Retrieved:
    """A measurement with a leg missing would be a measurement of something else."""
    silent: LegHealth | None = next((leg for leg in retrieved.health if not leg.answered), None)
    if silent is not None:
        raise LegFailed(f"the {silent.leg} leg did not answer: {silent.reason}")
    return retrieved


def _head(ranking: Ranking, depth: int) -> Ranking:
    return msgspec.structs.replace(ranking, candidates=ranking.candidates[:depth])
