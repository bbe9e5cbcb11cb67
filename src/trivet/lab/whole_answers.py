"""A measurement takes the time it takes, and every answer in it is whole.

Recall leaves out what is late or fails, and says so: right for a person who waits, wrong in the lab, where an arm
without a leg is another arm. On a busy machine a time limit would measure the machine. So an engine that measures has
no time limits, and what does not answer ends the run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import msgspec

from trivet.errors import InvalidInput, LegFailed
from trivet.memory.answer.decision import Decision
from trivet.memory.answer.expand import NO_LANGUAGE_MODEL, Rewriter
from trivet.memory.engine import Engine
from trivet.models.http import Limits
from trivet.search.legs.registry import legs
from trivet.search.parallel import ParallelLegs, Search
from trivet.search.recipe import Recipe
from trivet.settings import Settings
from trivet.types import LegHealth, Ranking

# The most that a setting allows. What has not answered by then never will, and the run ends instead of hanging.
PATIENT_MS = 600_000
# A language model that writes or judges for the lab is waited for as long.
PATIENT = Limits(seconds=PATIENT_MS / 1000, deadline=PATIENT_MS / 1000, attempts=2, most_bytes=2**20)
LIMIT = "_time_limit_ms"


def patient(settings: Settings) -> Settings:
    """The settings with every time limit out of the way."""
    limits = {name: PATIENT_MS for name in settings.__struct_fields__ if name.endswith(LIMIT)}
    return msgspec.structs.replace(settings, **limits)


def measuring(engine: Engine) -> Engine:
    """The same engine as one to measure with: nothing is left out for being late, and what fails is an error."""
    settings = patient(engine.settings)
    engine.worker.be_patient()
    engine.embedding.be_patient()
    rewriter = Rewriter(settings.expand_llm, settings.expand_time_limit_ms) if engine.rewriter else None
    return msgspec.structs.replace(engine, settings=settings, legs=WatchedLegs(engine.legs), rewriter=rewriter)


class WatchedLegs(ParallelLegs):
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
        demand_answers(health)
        return rankings, health

    def stop(self) -> None:
        self._legs.stop()


def demand_answers(health: Iterable[LegHealth]) -> None:
    silent = next((leg for leg in health if not leg.answered), None)
    if silent is not None:
        raise LegFailed(f"{silent.leg} did not answer: {silent.reason or 'it gave no reason'}")


def demand_whole(decision: Decision) -> None:
    """Also what is known not to answer, and so was not even asked, counts as missing."""
    demand_answers([*decision.retrieved.health, *decision.pool.health])
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
        raise InvalidInput(f"{recipe}: without an embedder no leg of it can search. Name an embedder or other legs.")
    return absent
