"""Complete and cached retrieval for measurements.

A leg that does not answer ends the run: dropping it, as a recall does, would measure a different
arm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from trivet.analyse import Question
from trivet.errors import InvalidInput, LegFailed
from trivet.memory.answer.decision import Decision, Retrieved
from trivet.memory.answer.expand import NO_LANGUAGE_MODEL
from trivet.memory.answer.retrieve import retrieve, run_legs
from trivet.memory.answer.rewriter import Rewriter
from trivet.memory.engine import Engine
from trivet.models.http import Limits
from trivet.search.concurrency import ParallelLegs, Search
from trivet.search.legs.leg import Leg, LegQuery
from trivet.search.legs.registry import legs
from trivet.search.recipe import Recipe
from trivet.settings import Settings
from trivet.types import Filter, LegHealth, Ranking

# The setting's maximum, which only keeps a run from hanging forever.
LONG_LIMIT_MS = 600_000
# The same, for a language model.
LONG_LIMITS = Limits(
    seconds=LONG_LIMIT_MS / 1000, deadline=LONG_LIMIT_MS / 1000, attempts=2, most_bytes=2**20
)
LIMIT = "_time_limit_ms"


def without_time_limits(settings: Settings) -> Settings:
    limits = {name: LONG_LIMIT_MS for name in settings.__struct_fields__ if name.endswith(LIMIT)}
    return msgspec.structs.replace(settings, **limits)


def measuring_engine(engine: Engine) -> Engine:
    settings = without_time_limits(engine.settings)
    engine.worker.be_patient()
    engine.embedding.be_patient()
    rewriter = (
        Rewriter(settings.expand_llm, settings.expand_time_limit_ms) if engine.rewriter else None
    )
    return msgspec.structs.replace(
        engine, settings=settings, legs=StrictLegs(engine.legs), rewriter=rewriter
    )


class StrictLegs(ParallelLegs):
    """Legs and reranker, each of which must answer."""

    def __init__(self, legs: ParallelLegs) -> None:
        self._legs = legs
        self.turns = legs.turns

    def run(
        self,
        legs: Mapping[str, Search],
        time_limit_ms: int,
        here: Sequence[str],
        late: Callable[[str], None] = lambda name: None,
    ) -> tuple[list[Ranking], list[LegHealth]]:
        rankings, health = self._legs.run(legs, time_limit_ms, here, late)
        require_healthy_legs(health)
        return rankings, health

    def stop(self) -> None:
        self._legs.stop()


def require_healthy_legs(health: Iterable[LegHealth]) -> None:
    silent = next((leg for leg in health if not leg.answered), None)
    if silent is not None:
        raise LegFailed(f"{silent.leg} did not answer: {silent.reason or 'it gave no reason'}")


def require_complete(decision: Decision) -> None:
    """Raise if any leg did not answer or was not asked because it is down."""
    require_healthy_legs([*decision.retrieved.health, *decision.pool.health])
    if NO_LANGUAGE_MODEL in decision.pool.notes:
        raise LegFailed(f"{NO_LANGUAGE_MODEL}. Name one, or measure without expansion")


@contextmanager
def asked(query: str) -> Iterator[None]:
    try:
        yield
    except LegFailed as failed:
        raise LegFailed(
            f"Query {query}: {str(failed).rstrip('.')}. An answer without it would measure "
            "something else, so the run stops. Fix it, or remove it from the recipe."
        ) from None


def left_out(engine: Engine, recipe: Recipe) -> tuple[str, ...]:
    """Return the legs that need a missing embedder; raise if no leg is left."""
    if engine.embedding.enabled:
        return ()
    absent = tuple(leg.name for leg in legs() if leg.name in recipe.legs and leg.needs_embedder)
    if absent and set(absent) >= set(recipe.legs):
        raise InvalidInput(
            f"{recipe}: without an embedder no leg of it can search. Name an embedder or other "
            "legs."
        )
    return absent


# Depth of the cached rankings; a shallower recipe uses their head, which is what it would get.
CACHED_DEPTH = 100


class CachedLegs:
    """Rankings by leg, retrieved through the real path on first use."""

    def __init__(self) -> None:
        self._kept: dict[tuple[object, ...], Retrieved] = {}

    def retrieve(
        self, engine: Engine, question: Question, filter: Filter, recipe: Recipe
    ) -> Retrieved:
        chosen = [leg for leg in legs() if leg.name in recipe.legs]
        parts = [
            self._alone(engine, question, filter, recipe, leg)
            for leg in chosen
            if not leg.after_others
        ]
        if not any(part.narrowed for part in parts):
            found = [_head(ranking, recipe.depth) for part in parts for ranking in part.rankings]
            query = LegQuery(engine.store, engine.embedding, question, filter, recipe, found)
            parts += [self._after(engine, query, leg) for leg in chosen if leg.after_others]
        rankings = [_head(ranking, recipe.depth) for part in parts for ranking in part.rankings]
        health = [leg for part in parts for leg in part.health]
        notes = tuple(dict.fromkeys(note for part in parts for note in part.notes))
        return Retrieved(rankings, health, notes, any(part.narrowed for part in parts))

    def leg_times(self, leg: str) -> list[float]:
        return [
            health.took_ms
            for part in self._kept.values()
            for health in part.health
            if health.leg == leg
        ]

    def _alone(
        self, engine: Engine, question: Question, filter: Filter, recipe: Recipe, leg: Leg
    ) -> Retrieved:
        depth = max(recipe.depth, CACHED_DEPTH)
        # Terms too: a recipe that considers time drops the words that only name a time.
        key = (leg.name, question.text, question.terms, filter, depth, *leg.cache_key(recipe))
        if key not in self._kept:
            alone = msgspec.structs.replace(recipe, legs=(leg.name,), depth=depth)
            self._kept[key] = _whole(retrieve(engine, question, filter, alone))
        return self._kept[key]

    def _after(self, engine: Engine, query: LegQuery, leg: Leg) -> Retrieved:
        recipe = query.recipe
        others = [other.cache_key(recipe) for other in legs() if other.name in recipe.legs]
        asked = query.question
        key = (leg.name, asked.text, asked.terms, query.filter, recipe.depth, recipe.legs, *others)
        if key not in self._kept:
            self._kept[key] = _whole(run_legs(engine, query, [leg]))
        return self._kept[key]


def _whole(retrieved: Retrieved) -> Retrieved:
    require_healthy_legs(retrieved.health)
    return retrieved


def _head(ranking: Ranking, depth: int) -> Ranking:
    return msgspec.structs.replace(ranking, candidates=ranking.candidates[:depth])
