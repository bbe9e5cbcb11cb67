"""Judging how likely each hit is to be relevant, and leaving out noise."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trivet.memory.answer.decision import CandidatePool, Decision, ScoredCandidate
from trivet.memory.answer.weigh import likelier
from trivet.memory.engine import Engine
from trivet.memory.supersession.newer_first import raise_newer_relevance
from trivet.search.legs.registry import legs
from trivet.search.relevance import relevance, relevance_model
from trivet.search.rerank import EXPAND, Rerank
from trivet.types import Fused, Memory

# Hits from this probability on are shown even next to better ones.
ALWAYS_SHOWN_FROM = 0.05
# If even the best hit is unlikely, others are shown down to this share of it.
NOISE_SHARE = 0.2
# Hits shown if none reaches ALWAYS_SHOWN_FROM: noise has similar probabilities.
MAX_UNLIKELY_SHOWN = 3
# Up to this rank, hits of the graph or another system are kept however unlike the question.
MAX_INDIRECT_RANK = 3
# The likeliest hit is almost always among the first three.
CONFIDENCE_DEPTH = 3


def judged(engine: Engine, decision: Decision, at_least: float | None) -> Decision:
    """Return the decision with relevance, and without hits that only pad the answer.

    Hits from `at_least` on stay. With None the best stays, and others until their probability falls
    off.
    """
    likelihood = Likelihood(engine, decision.pool, decision.recipe.rerank)
    likelihood.read([hit.memory for hit in decision.hits])
    apart = raise_newer_relevance(
        tuple(
            msgspec.structs.replace(
                hit, relevance=_time_adjusted(hit, likelihood.of(hit.fused, hit.memory))
            )
            for hit in decision.hits
        )
    )
    likely = fit_decreasing([hit.relevance for hit in apart])
    hits: tuple[ScoredCandidate, ...] = tuple(
        msgspec.structs.replace(hit, relevance=probability)
        for hit, probability in zip(apart, likely, strict=True)
    )
    best = max(likely, default=None)
    least = _noise_threshold(best or 0.0) if at_least is None else at_least
    most = (
        MAX_UNLIKELY_SHOWN if at_least is None and (best or 0.0) < ALWAYS_SHOWN_FROM else len(hits)
    )
    kept = {hit.memory.id for hit in hits[:most] if hit.relevance >= least}
    kept |= {hit.memory.id for hit in hits if at_least is None and _ranked_without_text(hit)}
    dropped = {
        hit.memory.id: _reason(hit.relevance, at_least, least)
        for hit in hits
        if hit.memory.id not in kept
    }
    return msgspec.structs.replace(
        decision,
        hits=tuple(hit for hit in hits if hit.memory.id in kept),
        dropped={**decision.dropped, **dropped},
        best_relevance=best,
        nothing_relevant=best is None or best < (at_least or relevance_model().threshold),
    )


def _time_adjusted(hit: ScoredCandidate, likely: float) -> float:
    return likely if hit.time is None else likelier(likely, hit.time_evidence)


def _ranked_without_text(hit: ScoredCandidate) -> bool:
    reading = {EXPAND, *(leg.name for leg in legs() if leg.reads_text)}
    parts = (part for part in hit.fused.contributions if part.leg not in reading)
    return any(part.rank is not None and part.rank <= MAX_INDIRECT_RANK for part in parts)


def _noise_threshold(best: float) -> float:
    return min(ALWAYS_SHOWN_FROM, NOISE_SHARE * best)


def _reason(relevance: float, demanded: float | None, least: float) -> str:
    if demanded is None and relevance >= least:
        return (
            f"has a relevance of {relevance:g}, and no hit is likely; only the nearest "
            f"{MAX_UNLIKELY_SHOWN} are shown"
        )
    if demanded is None:
        return (
            f"has a relevance of {relevance:g}, far below the best hit; "
            "relevance_at_least=0 shows it"
        )
    return f"has a relevance of {relevance:g}, and at least {least:g} was requested"


def fit_decreasing(likely: Sequence[float]) -> list[float]:
    """Make probabilities decrease with the ranks: each rise becomes the mean of both sides.

    The ranking knows more than the model, and means keep the probabilities calibrated.
    """
    runs: list[tuple[float, int]] = []
    for probability in likely:
        runs.append((probability, 1))
        while len(runs) > 1 and runs[-2][0] < runs[-1][0]:
            (upper, count), (lower, more) = runs[-2], runs[-1]
            runs[-2:] = [((upper * count + lower * more) / (count + more), count + more)]
    return [round(mean, 4) for mean, count in runs for _ in range(count)]


class Likelihood:
    def __init__(self, engine: Engine, pool: CandidatePool, step: Rerank | None = None) -> None:
        self._pool = pool
        self._embedder = serving_identity(engine)
        read = step is not None and any(hit.rerank is not None for hit in pool.fused)
        self._reader = (
            engine.rerankers.named(step.model).identity if step is not None and read else None
        )

    def read(self, memories: Sequence[Memory]) -> None:
        """Read memories together before calls of `of`."""
        for one in self._pool.evidence:
            one.wording.read(memories)

    def of(self, fused: Fused, memory: Memory) -> float:
        """Return the best probability by the question or a rewrite."""
        known = [one.of(fused.id, memory) for one in self._pool.evidence]
        read = fused.rerank.score if fused.rerank is not None else None
        found = [
            relevance(one, self._embedder, read, self._reader) for one in known if one is not None
        ]
        return max(found, default=0.0)


def confidence(engine: Engine, pool: CandidatePool) -> float:
    head = pool.fused[:CONFIDENCE_DEPTH]
    memories = engine.store.memories.get_many([hit.id for hit in head])
    likelihood = Likelihood(engine, pool)
    return max(
        (likelihood.of(hit, memories[hit.id]) for hit in head if hit.id in memories), default=0.0
    )


def serving_identity(engine: Engine) -> str | None:
    serving = engine.embedding.serving()
    return serving.identity if serving else None
