"""The read path: analyse -> legs -> fuse -> rerank -> bonus and prior -> choose -> present, traced throughout."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from trivet.analyse import Question, analyse_query
from trivet.contract import Recall, RecallRequest
from trivet.memory.answer.choose import Choice, choose, sort_hits
from trivet.memory.answer.evidence import Evidence, Words
from trivet.memory.answer.expand import expanded
from trivet.memory.answer.health import health_of
from trivet.memory.answer.judge import Verdict, verdict_on
from trivet.memory.answer.paths import paths_to
from trivet.memory.answer.pool import Pool
from trivet.memory.answer.present import present, within_budget
from trivet.memory.answer.rerank import reranked
from trivet.memory.answer.weigh import Weighed, weigh
from trivet.memory.engine import Engine
from trivet.search.filters import filter_of
from trivet.search.fuse import fuse
from trivet.search.legs.dense import dense
from trivet.search.legs.graph import graph, seeds_of
from trivet.search.legs.lexical import lexical
from trivet.search.legs.phrase import only_holders
from trivet.search.parallel import Leg
from trivet.search.recipe import Recipe, parse_recipe
from trivet.search.rerank.step import resolved
from trivet.store.records import Seeds
from trivet.types import Answer, Filter, Fused, LegHealth, Ranking


class Retrieved(msgspec.Struct, frozen=True):
    """What the legs gave. `narrowed`: quoted words were found, so only memories that hold them are left.

    `seeds` is where the walk through the graph started, if it did.
    """

    rankings: list[Ranking]
    health: list[LegHealth]
    notes: tuple[str, ...] = ()
    narrowed: bool = False
    seeds: Seeds | None = None


class Decision(msgspec.Struct, frozen=True):
    """What was decided before anything is shown, with everything it came by."""

    filter: Filter
    question: Question
    recipe: Recipe
    retrieved: Retrieved
    pool: Pool
    weighed: tuple[Weighed, ...]
    verdict: Verdict

    @property
    def fused(self) -> tuple[Fused, ...]:
        return self.pool.fused

    @property
    def choice(self) -> Choice:
        return self.verdict.choice


class Trail(msgspec.Struct, frozen=True):
    """An answer and the decision behind it, for those who ask why."""

    answer: Answer
    decision: Decision


Retrieve = Callable[[Engine, Question, Filter, Recipe], Retrieved]


def recall(engine: Engine, request: RecallRequest) -> Answer:
    if request.federated:
        from trivet.memory.federation.recall import recall_federated

        answer = recall_federated(engine, request)
    else:
        answer = follow(engine, request).answer
    engine.tally.note(hit.id for hit in answer.hits)
    return answer


def follow(engine: Engine, request: Recall, by: Retrieve | None = None) -> Trail:
    """`by` is another way to retrieve than from our own legs alone."""
    with engine.store.moment():
        return _follow(engine, request, by or retrieve)


def _follow(engine: Engine, request: Recall, by: Retrieve) -> Trail:
    watch = Stopwatch()
    decision = decide(engine, request, watch, by)
    retrieved = decision.retrieved
    with watch.stage("present"):
        models = engine.embedding.models()
        serving = next((model for model in models if model.serving), None)
        chosen = sort_hits(decision.choice.hits, request.sort)
        paths = paths_to(engine.store, chosen, retrieved.seeds, decision.filter, decision.recipe.walk)
        hits = present(
            engine.store, decision.question, chosen, retrieved.rankings, serving, decision.filter, request.reveal, paths
        )
        hits, truncated = within_budget(hits, request.token_budget)
        health = health_of(engine, models, decision.filter, decision.pool.health, retrieved.notes)
    answer = Answer(
        query=decision.question.text,
        hits=hits,
        health=health,
        took_ms=watch.total_ms(),
        stages_ms=watch.stages_ms,
        recipe=str(decision.recipe),
        considered=len(decision.fused),
        truncated=truncated,
        nothing_relevant=decision.verdict.nothing_relevant,
        best_relevance=decision.verdict.best_relevance,
        asked=decision.pool.asked,
    )
    return Trail(answer, decision)


def decide(engine: Engine, request: Recall, watch: Stopwatch, retrieve: Retrieve) -> Decision:
    recipe = recipe_of(engine, request)
    filter = filter_of(request, engine.settings, engine.viewer)
    with watch.stage("analyse"):
        question = analyse_query(engine.guard.without_secrets(request.query))
    with watch.stage("legs"):
        retrieved = retrieve(engine, question, filter, recipe)
    with watch.stage("fuse"):
        words = Words(engine.store, question, filter, recipe)
        fused = fuse(recipe.fusion, retrieved.rankings, words.of_all)
        pool = Pool(fused, (Evidence(words, fused, retrieved.rankings),), retrieved.health)
    if engine.settings.expand if request.expand is None else request.expand:
        with watch.stage("expand"):
            pool = expanded(
                engine, question, filter, recipe, pool, lambda other: retrieve(engine, other, filter, recipe).rankings
            )
    if recipe.rerank is not None:
        with watch.stage("rerank"):
            pool = reranked(engine, question, pool, retrieved.rankings, recipe.rerank)
    with watch.stage("weigh"):
        weighed = weigh(engine.store, question, pool.fused, recipe, request.limit)
    with watch.stage("choose"):
        choice = choose(engine.store, weighed, request, filter)
        if len(choice.hits) < request.limit and len(weighed) < len(
            pool.fused
        ):  # duplicates used them up: read the rest
            weighed = weigh(engine.store, question, pool.fused, recipe, len(pool.fused))
            choice = choose(engine.store, weighed, request, filter)
    with watch.stage("judge"):
        verdict = verdict_on(engine, choice, pool, at_least_of(engine, request))
    return Decision(filter, question, recipe, retrieved, pool, weighed, verdict)


def recipe_of(engine: Engine, request: Recall) -> Recipe:
    """The recipe that this recall follows, with its reranking spelled out."""
    members = tuple(engine.members.declared)
    recipe = parse_recipe(request.recipe, members) if request.recipe is not None else engine.recipe
    step = resolved(recipe.rerank, request.rerank, engine.rerankers.setting)
    return recipe if step == recipe.rerank else msgspec.structs.replace(recipe, rerank=step)


def at_least_of(engine: Engine, request: Recall) -> float:
    given = request.relevance_at_least
    return (engine.settings.relevance_at_least or 0.0) if given is None else given


def retrieve(engine: Engine, question: Question, filter: Filter, recipe: Recipe) -> Retrieved:
    """The legs' rankings. A query of quoted words alone keeps only memories that hold them, if there are any.

    Beside other words a quotation is a preference, which the exact-match bonus gives: in `who wrote "Hush"`
    the memory that answers need not hold the title. Narrowing there cost 0.013 nDCG@10 on HotpotQA.
    """
    legs: dict[str, Leg] = {}
    if "lexical" in recipe.legs:
        legs["lexical"] = lambda: lexical(engine.store, question, filter, recipe)
    if "dense" in recipe.legs and engine.embedding.enabled:
        legs["dense"] = lambda: dense(engine.store, engine.embedding, question.text, filter, recipe)
    rankings, health = engine.legs.run(legs, engine.settings.leg_time_limit_ms, here="lexical")
    if not question.quoted_only:
        return walk_on(engine, question, filter, recipe, Retrieved(rankings, health))
    holding = only_holders(engine.store, question, filter, recipe, rankings)
    if not holding:
        note = "no memory holds the quoted words as a phrase; searched for the words instead"
        return Retrieved(rankings, health, (note,))
    return Retrieved(holding, health, narrowed=True)


def walk_on(engine: Engine, question: Question, filter: Filter, recipe: Recipe, found: Retrieved) -> Retrieved:
    """What the other legs found, and what the graph leads to from there."""
    if "graph" not in recipe.legs:
        return found
    seeds: Seeds | None = None

    def walk() -> Ranking:
        nonlocal seeds
        seeds = seeds_of(engine.store, question, found.rankings, filter, recipe)
        return graph(engine.store, seeds, filter, recipe)

    rankings, health = engine.legs.run({"graph": walk}, engine.settings.leg_time_limit_ms, here="graph")
    return Retrieved([*found.rankings, *rankings], [*found.health, *health], found.notes, found.narrowed, seeds)


class Stopwatch:
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
