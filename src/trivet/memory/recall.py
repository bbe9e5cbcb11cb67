"""The read path: analyze -> legs -> fuse -> expand, rerank -> weigh -> choose -> judge -> present.

- Analyze: remove secrets, correct typing errors, interpret a named time.
- Legs: run them in parallel, then the graph leg from their hits; if one fails, others answer.
- Expand, rerank: do so on request, or if the best candidates are unsure.
- Weigh: count exact matches, importance and the named time.
- Choose: replace superseded memories, fold near-duplicates, put newer facts first.
- Present: add reasons and the health of the legs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import msgspec

from trivet.contract import Recall, RecallRequest
from trivet.memory.answer.choose import choose, cut, sort_hits
from trivet.memory.answer.decision import Decision, ScoredCandidate, Stopwatch
from trivet.memory.answer.present import coarsen_times, health_of, present
from trivet.memory.answer.relevance import judged
from trivet.memory.answer.rerank import rerank_candidates, should_rerank
from trivet.memory.answer.retrieve import (
    Retrieve,
    compute_slot,
    effective_recipe,
    fuse_rankings,
    resolve_query,
    retrieve,
    retrieve_with_time,
)
from trivet.memory.answer.weigh import CandidateScoring, no_match_in_period_note
from trivet.memory.engine import Engine
from trivet.memory.supersession.newer_first import order_newer_first
from trivet.search.query import build_filter
from trivet.search.rerank import Rerank
from trivet.types import Answer

# Score this many times more candidates when those so far do not fill the answer.
DEPTH_FACTOR = 3


def recall(engine: Engine, request: RecallRequest) -> Answer:
    """Answer the request, and count the hits for `tidy`."""
    if request.federated:
        from trivet.memory.answer.federation import recall_federated

        answer = recall_federated(engine, request, recall_with_decision)
    else:
        answer, _ = recall_with_decision(engine, request)
    engine.usage_counter.note(hit.id for hit in answer.hits)
    return answer if engine.caller is None else coarsen_times(answer)


def recall_with_decision(
    engine: Engine, request: Recall, retrieve: Retrieve = retrieve
) -> tuple[Answer, Decision]:
    """Return an answer and the decision behind it.

    `retrieve` may add other sources, as in a federated recall.
    """
    watch = Stopwatch()
    typed = engine.guard.without_secrets(request.query)
    with engine.load.recall(), compute_slot(engine, request, typed), engine.store.moment():
        decision = decide(engine, request, watch, retrieve, typed)
        with watch.stage("present"):
            models = engine.embedding.models()
            serving = next((model for model in models if model.serving), None)
            chosen = sort_hits(decision.hits, request.sort)
            hits, truncated = present(
                engine, decision, chosen, serving, request.reveal, request.token_budget
            )
            health = health_of(engine, models, decision)
        answer = Answer(
            query=decision.query,
            hits=hits,
            health=health,
            took_ms=watch.total_ms(),
            stages_ms=watch.stages_ms,
            recipe=str(decision.recipe),
            considered=len(decision.pool.fused),
            truncated=truncated,
            nothing_relevant=decision.nothing_relevant,
            best_relevance=decision.best_relevance,
            asked=decision.pool.asked,
        )
        return answer, decision


def decide(
    engine: Engine, request: Recall, watch: Stopwatch, retrieve: Retrieve, typed: str | None = None
) -> Decision:
    """Decide which memories answer the request, in what order, and why others do not.

    `typed` is the query if its secrets are already removed.
    """
    decision = rank(engine, request, watch, retrieve, typed)
    with watch.stage("judge"):
        return judged(engine, decision, _required_relevance(engine, request))


def rank(
    engine: Engine, request: Recall, watch: Stopwatch, retrieve: Retrieve, typed: str | None = None
) -> Decision:
    """Return the candidates in order, without judging their relevance.

    For 100 hits, judging takes as long as all the rest.
    """
    found = _fused(engine, request, watch, retrieve, typed)
    if engine.settings.expand if request.expand is None else request.expand:
        found = _expanded(engine, watch, retrieve, found)
    step = found.recipe.rerank
    if step is not None and should_rerank(engine, found.pool, step):
        found = _reranked(engine, watch, found, step)
    with watch.stage("weigh"):
        weighing = CandidateScoring(
            engine.store,
            found.pool.evidence[0].wording,
            found.pool.fused,
            found.recipe,
            found.filter,
            found.time,
        )
        scored = weighing.first(request.limit)
        found = _with_period_note(found, scored)
    with watch.stage("choose"):
        return _with_hits(engine, request, found, weighing, scored)


def _fused(
    engine: Engine, request: Recall, watch: Stopwatch, retrieve: Retrieve, typed: str | None
) -> Decision:
    """Return the candidates that the legs found, in fused order, without hits yet."""
    recipe = effective_recipe(engine, request)
    filter = build_filter(request, engine.settings, engine.viewer)
    with watch.stage("analyse"):
        typed = engine.guard.without_secrets(request.query) if typed is None else typed
        query = resolve_query(engine, typed, filter, recipe)
    with watch.stage("legs"):
        retrieved = retrieve_with_time(engine, query, filter, recipe, retrieve)
    with watch.stage("fuse"):
        pool = fuse_rankings(engine.store, query, filter, recipe, retrieved)
    return Decision(
        query=typed,
        filter=filter,
        question=query.question,
        recipe=recipe,
        retrieved=retrieved,
        pool=pool,
        hits=(),
        dropped={},
        time=query.time,
    )


def _expanded(engine: Engine, watch: Stopwatch, retrieve: Retrieve, found: Decision) -> Decision:
    from trivet.memory.answer.expand import expand_query

    with watch.stage("expand"):
        pool = expand_query(
            engine, found.question, found.filter, found.recipe, found.pool, retrieve
        )
    return msgspec.structs.replace(found, pool=pool)


def _reranked(engine: Engine, watch: Stopwatch, found: Decision, step: Rerank) -> Decision:
    with watch.stage("rerank"):
        pool = rerank_candidates(engine, found.question, found.pool, found.retrieved.rankings, step)
    return msgspec.structs.replace(found, pool=pool)


def _with_period_note(found: Decision, scored: Sequence[ScoredCandidate]) -> Decision:
    if found.time is None:
        return found
    notes = (*found.pool.notes, *no_match_in_period_note(scored, found.time))
    return msgspec.structs.replace(found, pool=msgspec.structs.replace(found.pool, notes=notes))


def _with_hits(
    engine: Engine,
    request: Recall,
    found: Decision,
    weighing: CandidateScoring,
    scored: Sequence[ScoredCandidate],
) -> Decision:
    """Choose hits among the scored candidates; score more while too few remain."""
    store, filter, texts = engine.store, found.filter, found.pool.evidence[0].texts
    depth = request.limit
    candidates, dropped = choose(store, scored, request, filter, texts)
    # Candidates may be folded, superseded or purged.
    while len(candidates) < request.limit and max(depth, len(scored)) < len(found.pool.fused):
        depth *= DEPTH_FACTOR
        scored = weighing.first(depth)
        candidates, dropped = choose(store, scored, request, filter, texts)
    unread = partial(weighing.unread, scored, request.limit)
    names_a_time = found.time is not None
    ordered = order_newer_first(
        store, found.question, candidates, request, filter, unread, names_a_time
    )
    hits = cut(ordered, request.limit, dropped)
    return msgspec.structs.replace(found, hits=hits, dropped=dropped)


def _required_relevance(engine: Engine, request: Recall) -> float | None:
    given = request.relevance_at_least
    return engine.settings.relevance_at_least if given is None else given
