"""Query expansion by a language model, whose rewrites are searched if the answer is unsure.

Splitting the question into clauses by rules gained nothing (docs/reranking.md).
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence

import msgspec

from trivet.analyse import Question
from trivet.errors import EmbedderError
from trivet.memory.answer.decision import CandidatePool
from trivet.memory.answer.relevance import confidence
from trivet.memory.answer.retrieve import Retrieve
from trivet.memory.answer.rewriter import Rewriter
from trivet.memory.engine import Engine
from trivet.models.chat import BadAnswer
from trivet.search.fuse import fuse
from trivet.search.query import ask
from trivet.search.recipe import Recipe
from trivet.search.relevance_features import Evidence
from trivet.search.rerank import EXPAND
from trivet.secrets.masking import without_placeholders
from trivet.types import Contribution, Filter, Fused, LegHealth

# Expand an answer whose best hit is less probable than this.
UNSURE_BELOW = 0.5
# Weight of all rewrites together; the original question has the rest.
REWRITE_SHARE = 0.5
NO_LANGUAGE_MODEL = (
    "expand: the settings name no language model (expand_llm), so the question was not rewritten"
)


def expand_query(
    engine: Engine,
    question: Question,
    filter: Filter,
    recipe: Recipe,
    pool: CandidatePool,
    retrieve: Retrieve,
) -> CandidatePool:
    if engine.rewriter is None:
        return msgspec.structs.replace(pool, notes=(*pool.notes, NO_LANGUAGE_MODEL))
    started = time.perf_counter()
    if confidence(engine, pool) >= UNSURE_BELOW:
        return pool
    rewrites, failure = _rewrites(engine, engine.rewriter, question)
    answers: list[tuple[Fused, ...]] = []
    evidence, asked = list(pool.evidence), []
    for text in rewrites:
        if (time.perf_counter() - started) * 1000 > engine.settings.expand_time_limit_ms:
            break
        other = ask(engine.store, engine.guard.without_secrets(text), filter, recipe.bm25)
        rankings = retrieve(engine, other, filter, recipe).rankings
        answers.append(fuse(recipe.fusion, rankings))
        texts = evidence[0].texts
        evidence.append(Evidence(engine.store, other, filter, recipe, answers[-1], rankings, texts))
        asked.append(other.text)
    fused = fuse_rewrites(pool.fused, answers) if answers else pool.fused
    health = [*pool.health, *_health(failure, asked, started)]
    return msgspec.structs.replace(
        pool, fused=fused, evidence=tuple(evidence), health=health, asked=tuple(asked)
    )


def _rewrites(
    engine: Engine, rewriter: Rewriter, question: Question
) -> tuple[tuple[str, ...], str | None]:
    try:
        asked = without_placeholders(engine.guard.without_secrets(question.text))
        with engine.legs.turns.waiting():
            return rewriter.rewrites(question.text, asked), None
    except (EmbedderError, BadAnswer) as error:
        return (), str(error)


def _health(failure: str | None, asked: list[str], started: float) -> tuple[LegHealth, ...]:
    if failure is None and not asked:
        return ()
    took = round((time.perf_counter() - started) * 1000, 3)
    reason = None if failure is None else f"{failure}; the question was not rewritten"
    return (
        LegHealth(
            leg=EXPAND, answered=failure is None, candidates=len(asked), took_ms=took, reason=reason
        ),
    )


def fuse_rewrites(
    original: Sequence[Fused], others: Sequence[Sequence[Fused]]
) -> tuple[Fused, ...]:
    """Fuse lists with scores from 0 to 1; a missing memory counts as 0."""
    known = {hit.id: hit for hit in original}
    places: dict[str, int] = {}
    gained: dict[str, list[float]] = {}
    for answer in others:
        for place, hit in enumerate(answer, 1):
            known.setdefault(hit.id, msgspec.structs.replace(hit, score=0.0))
            gained.setdefault(hit.id, []).append(hit.score)
            places[hit.id] = min(place, places.get(hit.id, place))
    found = [
        _with_rewrite_share(hit, places.get(hit.id), gained.get(hit.id, []), len(others))
        for hit in known.values()
    ]
    # Stable: ties keep the order of the original question's list.
    return tuple(sorted(found, key=lambda hit: -hit.score))


def _with_rewrite_share(
    hit: Fused, place: int | None, scores: Sequence[float], lists: int
) -> Fused:
    mean, best = math.fsum(scores) / lists, max(scores, default=0.0)
    part = Contribution(leg=EXPAND, rank=place, score=best, normalised=mean, weight=REWRITE_SHARE)
    score = (1 - REWRITE_SHARE) * hit.score + REWRITE_SHARE * mean
    return msgspec.structs.replace(hit, score=score, contributions=(*hit.contributions, part))
