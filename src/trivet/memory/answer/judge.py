"""Says of each hit how likely it is to be relevant, and whether the answer holds anything relevant at all."""

from __future__ import annotations

import msgspec

from trivet.memory.answer.currency import as_relevant_as_older
from trivet.memory.answer.decision import Decision, Pool, Scored
from trivet.memory.engine import Engine
from trivet.search.relevance.model import relevance, relevance_model
from trivet.types import Memory


def judged(engine: Engine, decision: Decision, at_least: float) -> Decision:
    """The decision with what is known of its hits. Without a hit that is `at_least` so likely, it has none left.

    Where the caller demands nothing, nothing is left out, and the calibrated threshold says if anything is relevant.
    """
    embedder = serving_identity(engine)
    hits: tuple[Scored, ...] = tuple(
        msgspec.structs.replace(hit, relevance=likelihood(decision.pool, hit.fused.id, hit.memory, embedder))
        for hit in decision.hits
    )
    hits = as_relevant_as_older(hits)
    best = max((hit.relevance for hit in hits), default=None)
    nothing = best is None or best < (at_least or relevance_model().threshold)
    dropped = decision.dropped
    if best is not None and best < at_least:
        reason = f"no hit is {at_least:g} likely to be relevant; the likeliest is {best:g}"
        dropped = {**dropped, **{hit.memory.id: reason for hit in hits}}
        hits = ()
    return msgspec.structs.replace(decision, hits=hits, dropped=dropped, best_relevance=best, nothing_relevant=nothing)


def likelihood(pool: Pool, id: str, memory: Memory, embedder: str | None) -> float:
    """By the question or by the rewrite that suits it best; 0 so far down that nothing is known of it."""
    known = [one.of(id, memory) for one in pool.evidence]
    return max((relevance(features, embedder) for features in known if features is not None), default=0.0)


def serving_identity(engine: Engine) -> str | None:
    serving = engine.embedding.serving()
    return serving.identity if serving else None
