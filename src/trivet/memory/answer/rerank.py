"""Reranking: a model reads the best candidates with the query, if there is time."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial

import msgspec

from trivet.analyse import Question
from trivet.memory.answer.decision import CandidatePool
from trivet.memory.answer.relevance import Likelihood, confidence
from trivet.memory.engine import Engine
from trivet.memory.passages import best_excerpts, best_passages
from trivet.models.rerank.registry import PRESETS, Reranker
from trivet.search.relevance import strength
from trivet.search.rerank import RERANK, Rerank, blended
from trivet.secrets.masking import without_placeholders
from trivet.types import Candidate, LegHealth, Memory, Ranking

# The best passage counts. On LiHua-World a second one is worth 0.015 nDCG@10, a third 0.004 more.
MAX_RERANK_PASSAGES = 2
# Confidence in which reranking helps, measured on training/lives: below, it finds no answer either;
# above, it only confirms the order.
RERANK_FROM, RERANK_BELOW = 0.01, 0.85


def should_rerank(engine: Engine, pool: CandidatePool, step: Rerank) -> bool:
    """Return whether to rerank: on request, or if the ranking is unsure."""
    if not _is_optional(step):
        return True
    # A user without an embedder wants no model to run.
    return engine.embedding.enabled and RERANK_FROM <= confidence(engine, pool) < RERANK_BELOW


def _is_optional(step: Rerank) -> bool:
    preset = PRESETS.get(step.model)
    return preset is not None and preset.when_unsure


class RerankText(msgspec.Struct, frozen=True):
    id: str
    text: str


def rerank_candidates(
    engine: Engine,
    question: Question,
    pool: CandidatePool,
    rankings: Sequence[Ranking],
    step: Rerank,
) -> CandidatePool:
    """Return the pool reranked, or unchanged if that fails.

    Sensitive memories are never read: even a local model's score would reveal what they say.
    """
    assert step.top is not None, "set in a resolved step"
    assert step.blend is not None, "set in a resolved step"
    head = [hit.id for hit in pool.fused[: step.top]]
    memories = engine.store.memories.get_many(head)
    readable = [memories[id] for id in head if id in memories and not memories[id].sensitive]
    if not readable:
        return pool
    if _is_optional(step) and (crowded := engine.load.overload_reason()):
        return _without_reranking(
            pool, LegHealth(leg=RERANK, answered=False, reason=f"{crowded}; the fused order stands")
        )
    deadline = time.monotonic() + engine.settings.rerank_time_limit_ms / 1000
    first_alone = _is_optional(step) and len(readable) > 1 and readable[0].id == head[0]

    def reading(some: Sequence[Memory]) -> Ranking:
        return score_by_reranker(engine, step.model, question, some, rankings, deadline)

    def read() -> Ranking:
        if not first_alone:
            return reading(readable)
        first = reading(readable[:1])
        return (
            first
            if _first_suffices(engine, pool, first, readable[0], step)
            else _merge_rankings(first, reading(readable[1:]))
        )

    resting = engine.rerankers.resting(step.model)
    if resting:
        engine.rerankers.note(False)
        silent = LegHealth(leg=RERANK, answered=False, reason=resting)
        return _without_reranking(pool, _with_count(engine, silent))
    limit, late = engine.settings.rerank_time_limit_ms, partial(engine.rerankers.late, step.model)
    found, (health,) = engine.legs.run({RERANK: read}, limit, here=(), late=lambda _: late())
    engine.rerankers.note(health.answered)
    if not found:
        return _without_reranking(pool, _with_count(engine, health))
    top = 1 if first_alone and len(found[0].candidates) == 1 else step.top
    fused = blended(pool.fused, top, found[0], step.blend)
    return msgspec.structs.replace(pool, fused=fused, health=[*pool.health, health])


def _first_suffices(
    engine: Engine, pool: CandidatePool, first: Ranking, memory: Memory, step: Rerank
) -> bool:
    """Return whether the first candidate is sure enough to skip reading the others.

    On synthetic lives this saves four of five readings in a third of the reranked recalls, and
    moves 2 of 337 answers from rank 1 to 2.
    """
    read = msgspec.structs.replace(pool, fused=blended(pool.fused, 1, first, step.blend or 0.0))
    return strength(Likelihood(engine, read, step).of(read.fused[0], memory)) == "strong"


def _merge_rankings(*rankings: Ranking) -> Ranking:
    candidates = [candidate for ranking in rankings for candidate in ranking.candidates]
    return Ranking(
        leg=RERANK,
        floor=min(ranking.floor for ranking in rankings),
        candidates=tuple(sorted(candidates, key=lambda one: (-one.score, one.id))),
    )


def _without_reranking(pool: CandidatePool, health: LegHealth) -> CandidatePool:
    return msgspec.structs.replace(pool, health=[*pool.health, health])


def score_by_reranker(
    engine: Engine,
    model: str,
    question: Question,
    memories: Sequence[Memory],
    rankings: Sequence[Ranking],
    deadline: float,
) -> Ranking:
    reranker = engine.rerankers.named(model)
    query, texts = _redacted_for_reranker(
        engine, reranker, question, rerank_texts(engine, question, memories, rankings)
    )
    return _ranking(reranker, query, texts, deadline)


def rerank_texts(
    engine: Engine, question: Question, memories: Sequence[Memory], rankings: Sequence[Ranking]
) -> list[RerankText]:
    serving, best = engine.embedding.serving(), best_passages(rankings)
    parts = best_excerpts(engine.store, serving, memories, best, question, MAX_RERANK_PASSAGES)
    return [
        RerankText(memory.id, f"{memory.title}\n{part}" if memory.title else part)
        for memory in memories
        for part in parts[memory.id]
    ]


def _redacted_for_reranker(
    engine: Engine, reranker: Reranker, question: Question, texts: list[RerankText]
) -> tuple[str, list[RerankText]]:
    if reranker.local:
        return question.text, texts
    outside = [
        RerankText(one.id, without_placeholders(engine.guard.without_secrets(one.text)))
        for one in texts
    ]
    return without_placeholders(question.text), [one for one in outside if one.text.strip()]


def _ranking(reranker: Reranker, query: str, texts: list[RerankText], deadline: float) -> Ranking:
    scores = reranker.score(query, [one.text for one in texts], deadline) if texts else []
    best: dict[str, float] = {}
    for one, score in zip(texts, scores, strict=True):
        best[one.id] = max(score, best.get(one.id, score))
    order = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))
    floor = min(best.values(), default=0.0)
    return Ranking(
        leg=RERANK,
        floor=floor,
        candidates=tuple(Candidate(id=id, score=score) for id, score in order),
    )


def _with_count(engine: Engine, health: LegHealth) -> LegHealth:
    failed, asked = engine.rerankers.failed, engine.rerankers.asked
    reason = (
        f"{health.reason}; the fused order stands ({failed} of {asked} times since the "
        "store was opened)"
    )
    return msgspec.structs.replace(health, reason=reason)
