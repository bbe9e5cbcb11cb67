"""Says of each candidate how likely it is to be relevant, and whether the answer holds anything relevant at all."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trivet.memory.answer.choose import Choice
from trivet.memory.answer.pool import Pool
from trivet.memory.answer.weigh import Weighed
from trivet.memory.engine import Engine
from trivet.search.relevance.judge import relevance
from trivet.search.relevance.model import relevance_model


class Verdict(msgspec.Struct, frozen=True):
    """What is answered: the choice, or nothing of it where even its best hit is too unlikely to be relevant."""

    choice: Choice
    best_relevance: float | None
    nothing_relevant: bool


def verdict_on(engine: Engine, choice: Choice, pool: Pool, at_least: float) -> Verdict:
    """By the caller's measure, or by the calibrated one where the caller has none; that leaves nothing out."""
    hits = _judged(engine, choice.hits, pool)
    best = max((hit.relevance for hit in hits), default=None)
    nothing = best is None or best < (at_least or relevance_model().threshold)
    if best is None or best >= at_least:
        return Verdict(Choice(hits, choice.dropped), best, nothing)
    reason = f"no hit is {at_least:g} likely to be relevant; the likeliest is {best:g}"
    return Verdict(Choice((), {**choice.dropped, **{hit.memory.id: reason for hit in hits}}), best, nothing)


def _judged(engine: Engine, hits: Sequence[Weighed], pool: Pool) -> tuple[Weighed, ...]:
    """By the question or by the rewrite that suits it best. So far down that nothing is known of it, it stays at 0."""
    serving = engine.embedding.serving()
    embedder = serving.identity if serving else None

    def likely(hit: Weighed) -> float:
        known = (one.of(hit.fused, hit.memory) for one in pool.evidence)
        by_each = [relevance(one, embedder) for one in known if one is not None]
        return max(by_each, default=0.0)

    return tuple(msgspec.structs.replace(hit, relevance=likely(hit)) for hit in hits)
