"""Retrieval: resolve the query, run the legs, add memories of the named time, fuse the rankings."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from trivet.analyse import Question
from trivet.contract import Recall
from trivet.dates.spans import may_mention_event, may_mention_time
from trivet.memory.answer.decision import CandidatePool, Retrieved
from trivet.memory.answer.pending_embeddings import add_pending_embeddings
from trivet.memory.engine import Engine
from trivet.search.fuse import fuse
from trivet.search.legs.dense import NAME as DENSE
from trivet.search.legs.leg import Leg, LegQuery
from trivet.search.legs.lexical import NAME as LEXICAL
from trivet.search.legs.registry import legs
from trivet.search.query import ask, correct_spelling, keep_phrase_holders
from trivet.search.recipe import Recipe, parse_recipe
from trivet.search.relevance_features import Evidence
from trivet.search.rerank import resolved
from trivet.types import Candidate, Filter, LegHealth, Ranking

if TYPE_CHECKING:
    from trivet.search.temporal_filter import TemporalQuery
    from trivet.store import Store

# `retrieve` below, or one that also asks other systems.
Retrieve = Callable[[Engine, Question, Filter, Recipe], Retrieved]


class ResolvedQuery(msgspec.Struct, frozen=True):
    question: Question
    notes: tuple[str, ...]
    time: TemporalQuery | None


def compute_slot(engine: Engine, request: Recall, typed: str) -> AbstractContextManager[None]:
    """Start embedding the query, and return a context that waits for a turn."""
    if any(leg.needs_embedder for leg in initial_legs(effective_recipe(engine, request))):
        engine.embedding.begin(typed, engine.settings.leg_time_limit_ms)
    return engine.legs.turns.slot()


def effective_recipe(engine: Engine, request: Recall) -> Recipe:
    members = tuple(engine.systems.declared)
    recipe = parse_recipe(request.recipe, members) if request.recipe is not None else engine.recipe
    step = resolved(recipe.rerank, request.rerank, engine.rerankers.setting)
    return recipe if step == recipe.rerank else msgspec.structs.replace(recipe, rerank=step)


def resolve_query(engine: Engine, typed: str, filter: Filter, recipe: Recipe) -> ResolvedQuery:
    question = ask(engine.store, typed, filter, recipe.bm25)
    spelled = correct_spelling(engine.store, question, filter, recipe.bm25)
    if spelled.notes:
        question = ask(engine.store, spelled.text, filter, recipe.bm25)
    time = _named_time(engine, question, filter, recipe)
    return ResolvedQuery(question if time is None else time.question, spelled.notes, time)


def _named_time(
    engine: Engine, question: Question, filter: Filter, recipe: Recipe
) -> TemporalQuery | None:
    if not (may_mention_time(question.text) or may_mention_event(question.text)):
        return None
    # Loading takes milliseconds; few queries need it.
    from trivet.search.temporal_filter import temporal_query_of

    return temporal_query_of(engine.store, question, filter, recipe)


def retrieve_with_time(
    engine: Engine, query: ResolvedQuery, filter: Filter, recipe: Recipe, retrieve: Retrieve
) -> Retrieved:
    retrieved = retrieve(engine, query.question, filter, recipe)
    if query.time is None:
        return retrieved
    retrieved = add_temporal_matches(retrieved, engine.store, query.time, filter, recipe)
    narrowed = query.time.narrowed(filter)
    if narrowed is None:
        return retrieved
    leg_query = LegQuery(engine.store, engine.embedding, query.question, narrowed, recipe)
    return add_matches_in_period(retrieved, run_legs(engine, leg_query, initial_legs(recipe)))


def fuse_rankings(
    store: Store, query: ResolvedQuery, filter: Filter, recipe: Recipe, retrieved: Retrieved
) -> CandidatePool:
    fused = fuse(recipe.fusion, retrieved.rankings)
    evidence = Evidence(store, query.question, filter, recipe, fused, retrieved.rankings)
    return CandidatePool(fused, (evidence,), retrieved.health, (*query.notes, *retrieved.notes))


def retrieve(engine: Engine, question: Question, filter: Filter, recipe: Recipe) -> Retrieved:
    """Return the rankings of the legs.

    A query of only quoted words keeps memories that contain them. With other words a quotation is a
    preference: filtering cost 0.013 nDCG@10 on HotpotQA.
    """
    query = LegQuery(engine.store, engine.embedding, question, filter, recipe)
    query = query if question.quoted_only else _with_preparation(query)
    found = run_legs(engine, query, initial_legs(recipe))
    found = add_pending_embeddings(engine, query, found)
    if not question.quoted_only:
        return run_dependent_legs(engine, query, found)
    holding = keep_phrase_holders(engine.store, question, filter, recipe, found.rankings)
    if not holding:
        note = "no memory holds the quoted words as a phrase; searched for the words instead"
        return msgspec.structs.replace(found, notes=(note,))
    return msgspec.structs.replace(found, rankings=holding, narrowed=True)


def _with_preparation(query: LegQuery) -> LegQuery:
    found: dict[str, Any] = {}
    for leg in dependent_legs(query.recipe):
        if leg.prepare is not None:
            with suppress(Exception):  # the leg tries again, and its health reports the error
                found[leg.name] = leg.prepare(query)
    return replace(query, prepared=found)


def initial_legs(recipe: Recipe) -> list[Leg]:
    return [leg for leg in legs() if leg.name in recipe.legs and not leg.after_others]


def dependent_legs(recipe: Recipe) -> list[Leg]:
    return [leg for leg in legs() if leg.name in recipe.legs and leg.after_others]


def run_dependent_legs(engine: Engine, query: LegQuery, found: Retrieved) -> Retrieved:
    later = dependent_legs(query.recipe)
    if not later:
        return found
    more = run_legs(engine, replace(query, rankings=found.rankings), later)
    return msgspec.structs.replace(
        found, rankings=[*found.rankings, *more.rankings], health=[*found.health, *more.health]
    )


def run_legs(engine: Engine, query: LegQuery, chosen: Sequence[Leg]) -> Retrieved:
    """Run the legs in parallel, except those paused after failures."""
    able = [leg for leg in chosen if engine.embedding.enabled or not leg.needs_embedder]
    resting = {leg.name: reason for leg in able if (reason := leg.resting(query))}
    ready = {leg.name: leg for leg in able if leg.name not in resting}
    here = [leg.name for leg in ready.values() if leg.in_callers_thread(query)]
    searches = {name: partial(leg.search, query) for name, leg in ready.items()}
    rankings, health = engine.legs.run(
        searches,
        engine.settings.leg_time_limit_ms,
        here,
        late=lambda name: ready[name].late(query),
    )
    left_out = [
        LegHealth(leg=name, answered=False, reason=reason) for name, reason in resting.items()
    ]
    return Retrieved(rankings, [*health, *left_out])


def add_temporal_matches(
    found: Retrieved, store: Store, asked: TemporalQuery, filter: Filter, recipe: Recipe
) -> Retrieved:
    """Append lexical matches of the time words, which the search left out."""
    legs = {ranking.leg for ranking in found.rankings if ranking.candidates}
    if (
        not asked.left_out
        or DENSE in legs
        or LEXICAL not in {ranking.leg for ranking in found.rankings}
    ):
        return found
    matches = store.lexical.search(
        asked.left_out, asked.left_out, 1, filter, recipe.bm25, recipe.depth
    )
    rankings = [
        _extend_ranking(ranking, matches if ranking.leg == LEXICAL else ())
        for ranking in found.rankings
    ]
    return msgspec.structs.replace(found, rankings=rankings)


def add_matches_in_period(found: Retrieved, within: Retrieved) -> Retrieved:
    more = {ranking.leg: ranking.candidates for ranking in within.rankings}
    rankings = [_extend_ranking(ranking, more.get(ranking.leg, ())) for ranking in found.rankings]
    failed = (
        f"within the period of the query, the {leg.leg} leg did not answer"
        for leg in within.health
        if leg.reason
    )
    return msgspec.structs.replace(found, rankings=rankings, notes=(*found.notes, *failed))


def _extend_ranking(ranking: Ranking, more: Sequence[Candidate]) -> Ranking:
    known = {candidate.id for candidate in ranking.candidates}
    last = ranking.candidates[-1].score if ranking.candidates else math.inf
    # Words can be rarer, and so score higher, within the period.
    added = [
        msgspec.structs.replace(one, score=min(one.score, last))
        for one in more
        if one.id not in known
    ]
    return msgspec.structs.replace(ranking, candidates=(*ranking.candidates, *added))
