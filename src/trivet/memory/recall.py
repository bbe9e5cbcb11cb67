"""The read path: analyse -> legs -> fuse -> expand, rerank -> weigh -> choose, later first -> judge -> present.

A query is cleaned of secrets, and its vector is begun. Meanwhile slips of the keyboard are mended, it is cut into
words, and the time it names ("last week") is understood (analyse). The legs of the recipe search for it side by side,
the graph after the others because it walks on from their hits; each gives a ranking, or fails alone (retrieve). Fusion
makes one list of the rankings. If the caller wants it, rewrites of the query add their finds; where it is unclear
whether the best candidates answer, a reranker reads them. Then the memories that can come first are read: what holds
the query literally gets a bonus, importance decides between near equals, what belongs to the time counts more (weigh),
successors stand in for superseded memories, hits that say the same are folded (choose). Of two hits on the same matter
the later stands first, unless the question asks about the past (later first). A calibrated model says how likely each
hit is to be relevant, and what is noise (judge). Last, the caller gets the hits with their reasons, and the health of
the legs.

`decide` is the whole way up to the choice; lab and tune use it with rankings of their own keeping.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from trivet.analyse import Question
from trivet.contract import Recall, RecallRequest
from trivet.dates.cues import may_name_a_time, may_name_an_event
from trivet.memory.answer.choose import choose, cut, sort_hits
from trivet.memory.answer.coarse_times import with_coarse_times
from trivet.memory.answer.currency import later_first
from trivet.memory.answer.decision import Decision, Pool, Retrieved
from trivet.memory.answer.judge import judged
from trivet.memory.answer.of_time import nothing_of_time, with_those_saying_so, with_those_within
from trivet.memory.answer.present import health_of, present
from trivet.memory.answer.rerank import is_due, reranked
from trivet.memory.answer.weigh import Weighing
from trivet.memory.engine import Engine
from trivet.memory.unembedded import with_unembedded
from trivet.search.asking import ask
from trivet.search.filters import filter_of
from trivet.search.fuse import fuse
from trivet.search.legs.leg import Leg, LegQuery
from trivet.search.legs.phrase import only_holders
from trivet.search.legs.registry import legs
from trivet.search.recipe import Recipe, parse_recipe
from trivet.search.relevance.features import Evidence
from trivet.search.rerank.step import resolved
from trivet.search.spelling import respelled
from trivet.types import Answer, Filter, LegHealth, Ranking

if TYPE_CHECKING:
    from trivet.search.when import TimeAsked

# So many times as deep candidates are read again, where those that were read are fewer than is asked for.
DEEPER = 3

Retrieve = Callable[[Engine, Question, Filter, Recipe], Retrieved]


def recall(engine: Engine, request: RecallRequest) -> Answer:
    """The body of the verb. The hits shown are counted, so that `tidy` can tell what is never used."""
    if request.federated:
        from trivet.memory.federation.recall import recall_federated

        answer = recall_federated(engine, request)
    else:
        answer, _ = follow(engine, request)
    engine.tally.note(hit.id for hit in answer.hits)
    return answer if engine.caller is None else with_coarse_times(answer)


def follow(engine: Engine, request: Recall, by: Retrieve | None = None) -> tuple[Answer, Decision]:
    """An answer and the decision behind it. `by` is another way to retrieve than from our own legs alone."""
    watch = Stopwatch()
    typed = engine.guard.without_secrets(request.query)
    with engine.load.recall(), _turn(engine, request, typed), engine.store.moment():
        decision = decide(engine, request, watch, by or retrieve, typed)
        with watch.stage("present"):
            models = engine.embedding.models()
            serving = next((model for model in models if model.serving), None)
            chosen = sort_hits(decision.hits, request.sort)
            hits, truncated = present(engine, decision, chosen, serving, request.reveal, request.token_budget)
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


def _turn(engine: Engine, request: Recall, typed: str) -> AbstractContextManager[None]:
    """The recall's turn to compute. Before it the query's vector is begun: the model runs outside the interpreter."""
    if any(leg.needs_embedder for leg in _legs_that_start(recipe_of(engine, request))):
        engine.embedding.begin(typed, engine.settings.leg_time_limit_ms)
    return engine.legs.turns.turn()


def decide(engine: Engine, request: Recall, watch: Stopwatch, retrieve: Retrieve, typed: str | None = None) -> Decision:
    """Everything but the showing: which memories answer the request, in what order, and why the others do not.

    `typed` is the query without secrets, where they have been looked for.
    """
    decision = rank(engine, request, watch, retrieve, typed)
    with watch.stage("judge"):
        return judged(engine, decision, _relevance_demanded(engine, request))


def rank(engine: Engine, request: Recall, watch: Stopwatch, retrieve: Retrieve, typed: str | None = None) -> Decision:
    """The candidates in their order, before it is judged how likely each is to be relevant.

    That takes as long as all the rest where a hundred are wanted, and whoever keeps every candidate may not need it.
    """
    store, recipe = engine.store, recipe_of(engine, request)
    filter = filter_of(request, engine.settings, engine.viewer)
    with watch.stage("analyse"):
        typed = engine.guard.without_secrets(request.query) if typed is None else typed
        question = ask(store, typed, filter, recipe.bm25)
        spelled = respelled(store, question, filter, recipe.bm25)
        if spelled.notes:
            question = ask(store, spelled.text, filter, recipe.bm25)
        asked = _time_asked(engine, question, filter, recipe)
        question = question if asked is None else asked.question
    with watch.stage("legs"):
        retrieved = retrieve(engine, question, filter, recipe)
        if asked is not None:
            retrieved = with_those_saying_so(retrieved, store, asked, filter, recipe)
        if asked is not None and (narrowed := asked.narrowed(filter)) is not None:
            query = LegQuery(store, engine.embedding, question, narrowed, recipe)
            retrieved = with_those_within(retrieved, search_with(engine, query, _legs_that_start(recipe)))
    with watch.stage("fuse"):
        fused = fuse(recipe.fusion, retrieved.rankings)
        evidence = Evidence(store, question, filter, recipe, fused, retrieved.rankings)
        pool = Pool(fused, (evidence,), retrieved.health, (*spelled.notes, *retrieved.notes))
    if engine.settings.expand if request.expand is None else request.expand:
        from trivet.memory.answer.expand import expanded

        with watch.stage("expand"):
            again = partial(_rankings, engine, retrieve, filter, recipe)
            pool = expanded(engine, question, filter, recipe, pool, again)
    if recipe.rerank is not None and is_due(engine, pool, recipe.rerank):
        with watch.stage("rerank"):
            pool = reranked(engine, question, pool, retrieved.rankings, recipe.rerank)
    with watch.stage("weigh"):
        deep = request.limit
        weighing = Weighing(store, evidence.wording, pool.fused, recipe, filter, asked)
        scored = weighing.first(deep)
        if asked is not None:
            pool = msgspec.structs.replace(pool, notes=(*pool.notes, *nothing_of_time(scored, asked)))
    with watch.stage("choose"):
        candidates, dropped = choose(store, scored, request, filter, evidence.texts)
        while len(candidates) < request.limit and max(deep, len(scored)) < len(pool.fused):  # used up, or gone
            deep *= DEEPER
            scored = weighing.first(deep)
            candidates, dropped = choose(store, scored, request, filter, evidence.texts)
        unread = partial(weighing.unread, scored, request.limit)
        ordered = later_first(store, question, candidates, request, filter, unread, names_a_time=asked is not None)
        hits = cut(ordered, request.limit, dropped)
    return Decision(
        query=typed,
        filter=filter,
        question=question,
        recipe=recipe,
        retrieved=retrieved,
        pool=pool,
        hits=hits,
        dropped=dropped,
        time=asked,
    )


def recipe_of(engine: Engine, request: Recall) -> Recipe:
    """The recipe that this recall follows, with its reranking spelled out."""
    members = tuple(engine.systems.declared)
    recipe = parse_recipe(request.recipe, members) if request.recipe is not None else engine.recipe
    step = resolved(recipe.rerank, request.rerank, engine.rerankers.setting)
    return recipe if step == recipe.rerank else msgspec.structs.replace(recipe, rerank=step)


def _time_asked(engine: Engine, question: Question, filter: Filter, recipe: Recipe) -> TimeAsked | None:
    if not (may_name_a_time(question.text) or may_name_an_event(question.text)):
        return None
    from trivet.search.when import time_asked  # takes milliseconds to load, and few queries need it

    return time_asked(engine.store, question, filter, recipe)


def _relevance_demanded(engine: Engine, request: Recall) -> float | None:
    given = request.relevance_at_least
    return engine.settings.relevance_at_least if given is None else given


def _rankings(engine: Engine, by: Retrieve, filter: Filter, recipe: Recipe, question: Question) -> list[Ranking]:
    return by(engine, question, filter, recipe).rankings


def retrieve(engine: Engine, question: Question, filter: Filter, recipe: Recipe) -> Retrieved:
    """The legs' rankings. A query of quoted words alone keeps only memories that hold them, if there are any.

    Beside other words a quotation is a preference, which the exact-match bonus gives: in `who wrote "Hush"`
    the memory that answers need not hold the title. Narrowing there cost 0.013 nDCG@10 on HotpotQA.
    """
    query = LegQuery(engine.store, engine.embedding, question, filter, recipe)
    query = query if question.quoted_only else _prepared(query)
    found = search_with(engine, query, _legs_that_start(recipe))
    found = with_unembedded(engine, query, found)
    if not question.quoted_only:
        return search_on(engine, query, found)
    holding = only_holders(engine.store, question, filter, recipe, found.rankings)
    if not holding:
        note = "no memory holds the quoted words as a phrase; searched for the words instead"
        return msgspec.structs.replace(found, notes=(note,))
    return msgspec.structs.replace(found, rankings=holding, narrowed=True)


def _prepared(query: LegQuery) -> LegQuery:
    """With what the legs that wait for others can find out now, while the query's vector is on its way."""
    found: dict[str, Any] = {}
    for leg in _legs_that_follow(query.recipe):
        if leg.prepare is not None:
            with suppress(Exception):  # the leg tries it again, and its health tells what is wrong
                found[leg.name] = leg.prepare(query)
    return replace(query, prepared=found)


def _legs_that_start(recipe: Recipe) -> list[Leg]:
    return [leg for leg in legs() if leg.name in recipe.legs and not leg.after_others]


def _legs_that_follow(recipe: Recipe) -> list[Leg]:
    return [leg for leg in legs() if leg.name in recipe.legs and leg.after_others]


def search_on(engine: Engine, query: LegQuery, found: Retrieved) -> Retrieved:
    """What was found, and what the legs that start from it find."""
    later = _legs_that_follow(query.recipe)
    if not later:
        return found
    more = search_with(engine, replace(query, rankings=found.rankings), later)
    return msgspec.structs.replace(
        found, rankings=[*found.rankings, *more.rankings], health=[*found.health, *more.health]
    )


def search_with(engine: Engine, query: LegQuery, chosen: Sequence[Leg]) -> Retrieved:
    """The rankings of these legs, run side by side. One that is known not to answer is not waited for."""
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
    left_out = [LegHealth(leg=name, answered=False, reason=reason) for name, reason in resting.items()]
    return Retrieved(rankings, [*health, *left_out])


class Stopwatch:
    """How long each stage of a recall took, for the trace."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.stages_ms: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.stages_ms[name] = round((time.perf_counter() - started) * 1000, 3)

    def total_ms(self) -> float:
        return round((time.perf_counter() - self._started) * 1000, 3)
