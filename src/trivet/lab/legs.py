"""Rankings kept from one recipe to the next: many fusions cost one retrieval."""

from __future__ import annotations

import msgspec

from trivet.analyse import Question
from trivet.lab.whole_answers import demand_answers
from trivet.memory.answer.decision import Retrieved
from trivet.memory.engine import Engine
from trivet.memory.recall import retrieve, search_with
from trivet.search.legs.leg import Leg, LegQuery
from trivet.search.legs.registry import legs
from trivet.search.recipe import Recipe
from trivet.types import Filter, Ranking

# Legs are asked this deep once; a recipe of lesser depth takes the head of it, which is what it would have got.
KEPT_DEPTH = 100


class CachedLegs:
    """Retrieves each leg through the real path on first need."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], Retrieved] = {}

    def retrieve(self, engine: Engine, question: Question, filter: Filter, recipe: Recipe) -> Retrieved:
        chosen = [leg for leg in legs() if leg.name in recipe.legs]
        parts = [self._alone(engine, question, filter, recipe, leg) for leg in chosen if not leg.after_others]
        if not any(part.narrowed for part in parts):
            found = [_head(ranking, recipe.depth) for part in parts for ranking in part.rankings]
            query = LegQuery(engine.store, engine.embedding, question, filter, recipe, found)
            parts += [self._after(engine, query, leg) for leg in chosen if leg.after_others]
        rankings = [_head(ranking, recipe.depth) for part in parts for ranking in part.rankings]
        health = [leg for part in parts for leg in part.health]
        notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
        return Retrieved(rankings, health, notes, any(part.narrowed for part in parts))

    def leg_times(self, leg: str) -> list[float]:
        """How long each retrieval of a leg took, in milliseconds."""
        return [health.took_ms for part in self._kept.values() for health in part.health if health.leg == leg]

    def _alone(self, engine: Engine, question: Question, filter: Filter, recipe: Recipe, leg: Leg) -> Retrieved:
        depth = max(recipe.depth, KEPT_DEPTH)
        # The terms besides the text: a recipe that heeds time searches without the words that only point to one.
        key = (leg.name, question.text, question.terms, filter, depth, *leg.cache_key(recipe))
        if key not in self._kept:
            alone = msgspec.structs.replace(recipe, legs=(leg.name,), depth=depth)
            self._kept[key] = _whole(retrieve(engine, question, filter, alone))
        return self._kept[key]

    def _after(self, engine: Engine, query: LegQuery, leg: Leg) -> Retrieved:
        """It starts from the other legs' hits, so it is kept for each way of getting them."""
        recipe = query.recipe
        others = [other.cache_key(recipe) for other in legs() if other.name in recipe.legs]
        asked = query.question
        key = (leg.name, asked.text, asked.terms, query.filter, recipe.depth, recipe.legs, *others)
        if key not in self._kept:
            self._kept[key] = _whole(search_with(engine, query, [leg]))
        return self._kept[key]


def _whole(retrieved: Retrieved) -> Retrieved:
    """A measurement with a leg missing would be a measurement of something else."""
    demand_answers(retrieved.health)
    return retrieved


def _head(ranking: Ranking, depth: int) -> Ranking:
    return msgspec.structs.replace(ranking, candidates=ranking.candidates[:depth])
