"""Asks again in other words where the first answer is unsure, and fuses all answers by score."""

from __future__ import annotations

import time
from collections.abc import Callable

from trivet.analyse import Question, analyse_query
from trivet.memory.answer.evidence import Evidence, Words
from trivet.memory.answer.expansion.expander import UNSURE
from trivet.memory.answer.expansion.merge import LEG, merged
from trivet.memory.answer.pool import Pool
from trivet.memory.engine import Engine
from trivet.search.fuse import fuse
from trivet.search.recipe import Recipe
from trivet.search.relevance.judge import relevance
from trivet.secrets.placeholder import without_placeholders
from trivet.types import Filter, Fused, LegHealth, Ranking

# The likeliest hit is almost always among so many of the first.
LOOKED_AT = 3

Retrieve = Callable[[Question], list[Ranking]]


def expanded(
    engine: Engine, question: Question, filter: Filter, recipe: Recipe, pool: Pool, retrieve: Retrieve
) -> Pool:
    """Stops asking when its time is over; what was answered until then counts."""
    started = time.perf_counter()
    if _confidence(engine, pool) >= UNSURE:
        return pool
    found = engine.expander.others(question.text, lambda text: without_placeholders(engine.guard.without_secrets(text)))
    answers: list[tuple[Fused, ...]] = []
    evidence, asked = list(pool.evidence), []
    for text in found.queries:
        if (time.perf_counter() - started) * 1000 > engine.settings.expand_time_limit_ms:
            break
        other = analyse_query(engine.guard.without_secrets(text))
        rankings = retrieve(other)
        words = Words(engine.store, other, filter, recipe)
        answers.append(fuse(recipe.fusion, rankings, words.of_all))
        evidence.append(Evidence(words, answers[-1], rankings))
        asked.append(other.text)
    fused = merged(pool.fused, answers) if answers else pool.fused
    return Pool(fused, tuple(evidence), [*pool.health, *_health(found.failure, asked, started)], tuple(asked))


def _confidence(engine: Engine, pool: Pool) -> float:
    serving = engine.embedding.serving()
    head = pool.fused[:LOOKED_AT]
    memories = engine.store.memories.get_many([hit.id for hit in head])
    known = [pool.evidence[0].of(hit, memories[hit.id]) for hit in head if hit.id in memories]
    identity = serving.identity if serving else None
    return max((relevance(features, identity) for features in known if features is not None), default=0.0)


def _health(failure: str | None, asked: list[str], started: float) -> tuple[LegHealth, ...]:
    if failure is None and not asked:
        return ()
    took = round((time.perf_counter() - started) * 1000, 3)
    reason = None if failure is None else f"{failure}; split by rule instead"
    return (LegHealth(leg=LEG, answered=failure is None, candidates=len(asked), took_ms=took, reason=reason),)
