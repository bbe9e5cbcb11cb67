"""A measurement takes the time it takes, and every answer in it is whole.

Recall leaves out what is late or fails, and says so: right for a person who waits, wrong in the lab, where an arm
without a leg is another arm. On a busy machine a time limit would measure the machine. So an engine that measures has
no time limits, and what does not answer ends the run.

Rankings kept from one recipe to the next: many fusions cost one retrieval.
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

# The most that a setting allows. What has not answered by then never will, and the run ends instead of hanging.
LONG_LIMIT_MS = 600_000
# A language model that writes or judges for the lab is waited for as long.
LONG_LIMITS = Limits(
    seconds=LONG_LIMIT_MS / 1000, deadline=LONG_LIMIT_MS / 1000, attempts=2, most_bytes=2**20
)
LIMIT = "_time_limit_ms"


def without_time_limits(settings: Settings) -> Settings:
    """The settings with every time limit out of the way."""
    limits = {name: LONG_LIMIT_MS for name in settings.__struct_fields__ if name.endswith(LIMIT)}
    return msgspec.structs.replace(settings, **limits)


def measuring_engine(engine: Engine) -> Engine:
    """The same engine as one to measure with: nothing is left out for being late, and what fails is an error."""
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
    """Legs, and the reranker, of which each must answer, on whatever surface the question was asked."""

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
    """Also what is known not to answer, and so was not even asked, counts as missing."""
    require_healthy_legs([*decision.retrieved.health, *decision.pool.health])
    if NO_LANGUAGE_MODEL in decision.pool.notes:
        raise LegFailed(f"{NO_LANGUAGE_MODEL}. Name one, or measure without expansion")


@contextmanager
def asked(query: str) -> Iterator[None]:
    """Within it, what does not answer is told with the query's id."""
    try:
        yield
    except LegFailed as failed:
        raise LegFailed(
            f"Query {query}: {str(failed).rstrip('.')}. An answer without it would measure something else, so the run "
            "ends here. Mend it, or leave it out of the recipe."
        ) from None


def left_out(engine: Engine, recipe: Recipe) -> tuple[str, ...]:
    """The legs of a recipe that take no part because the user measures without an embedder; not all may."""
    if engine.embedding.enabled:
        return ()
    absent = tuple(leg.name for leg in legs() if leg.name in recipe.legs and leg.needs_embedder)
    if absent and set(absent) >= set(recipe.legs):
        raise InvalidInput(
            f"{recipe}: without an embedder no leg of it can search. Name an embedder or other legs."
        )
    return absent


# Legs are asked this deep once; a recipe of lesser depth takes the head of it, which is what it would have got.
CACHED_DEPTH = 100


class CachedLegs:
    """Retrieves each leg through the real path on first need."""

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
        """How long each retrieval of a leg took, in milliseconds."""
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
            self._kept[key] = _whole(run_legs(engine, query, [leg]))
        return self._kept[key]


def _whole(retrieved: Retrieved) -> Retrieved:
    """A measurement with a leg missing would be a measurement of something else."""
    require_healthy_legs(retrieved.health)
    return retrieved


def _head(ranking: Ranking, depth: int) -> Ranking:
    return msgspec.structs.replace(ranking, candidates=ranking.candidates[:depth])
