"""The read path: analyze -> legs -> fuse -> expand, rerank -> weigh -> choose -> judge -> present.

1. Resolve the query: remove secrets, start its embedding, correct typing errors, interpret a
   named time.
2. Run the legs of the recipe in parallel, then the graph leg, which starts from their hits. If a
   leg fails, the others still answer.
3. Fuse the rankings into one list. On request, add what rewrites of the query find. If the best
   candidates are unsure, a reranker reads them.
4. Weigh: exact matches earn a bonus, importance decides between near equals, and a match of the
   named time counts more.
5. Choose: successors replace superseded memories, near-duplicates are folded, and newer facts come
   before older ones, unless the query asks about the past.
6. Judge each hit's relevance, and present the hits with their reasons and the health of the legs.
"""

from __future__ import annotations

from functools import partial

import msgspec

from trivet.contract import Recall, RecallRequest
from trivet.memory.answer.choose import choose, cut, sort_hits
from trivet.memory.answer.decision import Decision, Stopwatch
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

    For 100 hits, judging takes as long as everything else.
    """
    store, recipe = engine.store, effective_recipe(engine, request)
    filter = build_filter(request, engine.settings, engine.viewer)
    with watch.stage("analyse"):
        typed = engine.guard.without_secrets(request.query) if typed is None else typed
        query = resolve_query(engine, typed, filter, recipe)
    with watch.stage("legs"):
        retrieved = retrieve_with_time(engine, query, filter, recipe, retrieve)
    with watch.stage("fuse"):
        pool = fuse_rankings(store, query, filter, recipe, retrieved)
        evidence = pool.evidence[0]
    if engine.settings.expand if request.expand is None else request.expand:
        from trivet.memory.answer.expand import expand_query

        with watch.stage("expand"):
            pool = expand_query(engine, query.question, filter, recipe, pool, retrieve)
    if recipe.rerank is not None and should_rerank(engine, pool, recipe.rerank):
        with watch.stage("rerank"):
            pool = rerank_candidates(
                engine, query.question, pool, retrieved.rankings, recipe.rerank
            )
    with watch.stage("weigh"):
        deep = request.limit
        weighing = CandidateScoring(store, evidence.wording, pool.fused, recipe, filter, query.time)
        scored = weighing.first(deep)
        if query.time is not None:
            pool = msgspec.structs.replace(
                pool, notes=(*pool.notes, *no_match_in_period_note(scored, query.time))
            )
    with watch.stage("choose"):
        candidates, dropped = choose(store, scored, request, filter, evidence.texts)
        # Candidates may be folded, superseded or purged.
        while len(candidates) < request.limit and max(deep, len(scored)) < len(pool.fused):
            deep *= DEPTH_FACTOR
            scored = weighing.first(deep)
            candidates, dropped = choose(store, scored, request, filter, evidence.texts)
        unread = partial(weighing.unread, scored, request.limit)
        ordered = order_newer_first(
            store,
            query.question,
            candidates,
            request,
            filter,
            unread,
            names_a_time=query.time is not None,
        )
        hits = cut(ordered, request.limit, dropped)
    return Decision(
        query=typed,
        filter=filter,
        question=query.question,
        recipe=recipe,
        retrieved=retrieved,
        pool=pool,
        hits=hits,
        dropped=dropped,
        time=query.time,
    )


def _required_relevance(engine: Engine, request: Recall) -> float | None:
    given = request.relevance_at_least
    return engine.settings.relevance_at_least if given is None else given
