"""Fusion of other systems with Trivet: overlap of hits, and the gain of fusing them.

Half of the queries decide the number of hits and the weight; the other half measures them.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import msgspec
import numpy as np

from trivet.analyse import Question, analyse_query
from trivet.errors import InvalidInput, LegFailed
from trivet.lab.datasets.dataset import Dataset, Query
from trivet.lab.measure.bench import Bench, memory_id
from trivet.lab.measure.comparison import HEADLINE, paired
from trivet.lab.measure.complete_retrieval import LONG_LIMIT_MS
from trivet.lab.measure.hit_analysis import Overlap, Rules, apply_fusion_rules, overlap
from trivet.lab.measure.measures import Run, measure
from trivet.lab.measure.run import environment
from trivet.memory.answer.decision import Retrieved
from trivet.memory.answer.federation import add_system_weights, system_query
from trivet.memory.answer.other_trivet import OtherTrivet
from trivet.memory.engine import Engine
from trivet.memory.recall import recall_with_decision
from trivet.search.recipe import Recipe, parse_recipe
from trivet.search.systems.federation import Systems
from trivet.search.systems.messages import Reply
from trivet.settings.systems import ExternalSystem
from trivet.types import Candidate, Filter, Progress, Ranking

MEASURES = (HEADLINE, "recall@10", "MRR")
FETCH_K = (10, 30, 100)
WEIGHTS = (1.0, 2.0, 4.0, 8.0)
# As deep as any of the measures looks.
MEASURED_DEPTH = 10


class FusedPoint(msgspec.Struct, frozen=True, kw_only=True):
    fetch_k: int
    weight: float
    chosen_on: float
    held_out: float


class HeldOut(msgspec.Struct, frozen=True, kw_only=True):
    """The chosen point against Trivet or the member, on the held-out queries."""

    against: str
    measure: str
    queries: int
    base: float
    fused: float
    difference: float
    low: float
    high: float
    p: float


class Federation(msgspec.Struct, frozen=True, kw_only=True):
    kind: Literal["federation"] = "federation"
    dataset: str
    dataset_sha256: str
    member: str
    declared: dict[str, Any]
    recipe: str
    embedder: str | None
    queries: int
    silent: int  # Queries for which the member found nothing.
    unknown: int  # Hits whose ids are not in the dataset.
    overlap: Overlap
    rules: Rules
    points: list[FusedPoint]
    chosen: FusedPoint
    held_out: list[HeldOut]
    took_ms: dict[str, float]
    environment: dict[str, Any]


class AllMembers(msgspec.Struct, frozen=True, kw_only=True):
    chosen: dict[str, FusedPoint]
    held_out: list[HeldOut]


class Federations(msgspec.Struct, frozen=True, kw_only=True):
    kind: Literal["federations"] = "federations"
    members: list[Federation]
    together: AllMembers


@dataclass(frozen=True, kw_only=True)
class MemberReplies:
    name: str
    declared: ExternalSystem
    found: Mapping[str, Sequence[tuple[str, float]]]
    silent: int
    unknown: int
    took: Sequence[float]


class Choice(msgspec.Struct, frozen=True):
    fetch_k: int
    weight: float


def measure_federation(
    bench: Bench,
    members: Mapping[str, ExternalSystem],
    config: str,
    fetch_k: Sequence[int] = FETCH_K,
    weights: Sequence[float] = WEIGHTS,
    k: int = 10,
    progress: Progress | None = None,
) -> Federation | Federations:
    """Measure one member, or each of several and all together."""
    heard = [
        ask_member(bench, name, member, max(*fetch_k, k), progress)
        for name, member in members.items()
    ]
    asking = FusedRuns(bench, heard, config, k)
    alone = asking.run({})
    choices = [Choice(*point) for point in itertools.product(fetch_k, weights)]
    measured = [_one(bench, one, asking, alone, choices, k) for one in heard]
    if len(measured) == 1:
        return measured[0][0]
    chosen = {one.member: one.chosen for one, _ in measured}
    fused = asking.run(
        {name: Choice(point.fetch_k, point.weight) for name, point in chosen.items()}
    )
    _, held_out = split_queries(_answerable(bench.dataset))
    compared = _held_out(bench.dataset, "trivet", alone, fused, held_out)
    for one, best in measured:
        compared += _held_out(bench.dataset, f"trivet with {one.member}", best, fused, held_out)
    return Federations(
        members=[one for one, _ in measured], together=AllMembers(chosen=chosen, held_out=compared)
    )


def _one(
    bench: Bench,
    heard: MemberReplies,
    asking: FusedRuns,
    alone: Run,
    choices: Sequence[Choice],
    k: int,
) -> tuple[Federation, Run]:
    dataset, apart = bench.dataset, _as_run(heard.found)
    first, second = split_queries(_answerable(dataset))
    runs = {choice: asking.run({heard.name: choice}) for choice in choices}
    points = {choice: _by_half(dataset, run, first, second) for choice, run in runs.items()}
    # Among equals, the cheapest.
    best = max(points, key=lambda choice: (points[choice][0], -choice.fetch_k, -choice.weight))
    swept = {
        at: FusedPoint(fetch_k=at.fetch_k, weight=at.weight, chosen_on=on, held_out=out)
        for at, (on, out) in points.items()
    }
    serving = bench.trivet.engine.embedding.serving()
    found = overlap(dataset, alone, apart, k)
    federation = Federation(
        dataset=dataset.name,
        dataset_sha256=dataset.fingerprint,
        member=heard.name,
        declared=msgspec.to_builtins(heard.declared),
        recipe=asking.recipe,
        embedder=serving.identity if serving else None,
        queries=len(first) + len(second),
        silent=heard.silent,
        unknown=heard.unknown,
        overlap=found,
        rules=apply_fusion_rules(found),
        points=sorted(swept.values(), key=lambda point: -point.chosen_on),
        chosen=swept[best],
        held_out=[
            *_held_out(dataset, "trivet", alone, runs[best], second),
            *_held_out(dataset, heard.name, apart, runs[best], second),
        ],
        took_ms={"p50": float(np.median(heard.took)), "p95": float(np.quantile(heard.took, 0.95))},
        environment=environment(),
    )
    return federation, runs[best]


def ask_member(
    bench: Bench, name: str, declared: ExternalSystem, deep: int, progress: Progress | None = None
) -> MemberReplies:
    """Ask the member every query without a time limit; raise if one gets no answer."""
    member = msgspec.structs.replace(
        declared, fetch_k=deep, enabled=True, time_limit_ms=LONG_LIMIT_MS
    )
    systems = Systems({name: member})
    replies: dict[str, Reply] = {}
    took: list[float] = []
    try:
        for query in bench.dataset.queries:
            started = time.monotonic()
            sent = system_query(analyse_query(query.text))
            futures = systems.start(
                {name: member},
                sent,
                lambda one: OtherTrivet(bench.trivet.settings, one, recall_with_decision),
            )
            (heard,) = systems.collect(futures, started)
            if heard.reply is None:
                raise LegFailed(f"{name} did not answer query {query.id}: {heard.health.reason}")
            replies[query.id] = heard.reply
            took.append(heard.health.took_ms)
            if progress is not None:
                progress(1)
    finally:
        systems.close()
    if not any(reply.hits for reply in replies.values()):
        raise InvalidInput(
            f"{name} found nothing for any query of {bench.dataset.name}. Check that it searches "
            "these documents."
        )
    documents = {document.id for document in bench.dataset.documents}
    found = {query: _known(documents, reply) for query, reply in replies.items()}
    return MemberReplies(
        name=name,
        declared=declared,
        found=found,
        silent=sum(not reply.hits for reply in replies.values()),
        unknown=sum(len(reply.hits) for reply in replies.values())
        - sum(len(hits) for hits in found.values()),
        took=took,
    )


class FusedRuns:
    def __init__(self, bench: Bench, heard: Sequence[MemberReplies], config: str, k: int) -> None:
        self._bench = bench
        self._heard = {one.name: one for one in heard}
        self._recipe = parse_recipe(config, tuple(self._heard))
        self._depth = max(k, MEASURED_DEPTH)
        # The bench declares no members, and a recipe may name only declared ones.
        declared = {one.name: msgspec.structs.replace(one.declared, enabled=True) for one in heard}
        self._engine = msgspec.structs.replace(bench.trivet.engine, systems=Systems(declared))

    @property
    def recipe(self) -> str:
        return str(self._recipe)

    def run(self, choices: Mapping[str, Choice]) -> Run:
        weighed = {
            name: msgspec.structs.replace(self._heard[name].declared, weight=choice.weight)
            for name, choice in choices.items()
        }
        recipe = str(add_system_weights(self._recipe, weighed) if weighed else self._recipe)
        return {
            query.id: self._ranked(query, recipe, choices) for query in self._bench.dataset.queries
        }

    def _ranked(
        self, query: Query, recipe: str, choices: Mapping[str, Choice]
    ) -> list[tuple[str, float]]:
        rankings = [
            _ranking(self._heard[name], query.id, choice.fetch_k)
            for name, choice in choices.items()
            if self._heard[name].found[query.id]
        ]

        def retrieve(engine: Engine, question: Question, filter: Filter, how: Recipe) -> Retrieved:
            own = self._bench.legs.retrieve(engine, question, filter, how)
            return (
                msgspec.structs.replace(own, rankings=[*own.rankings, *rankings])
                if rankings
                else own
            )

        decision = self._bench.ask(
            query,
            recipe,
            self._depth,
            engine=self._engine,
            retrieve=retrieve,
            judge=False,
            collapse=False,
        )
        return _strictly_decreasing(
            [(self._bench.name_of(hit.memory.id), hit.score) for hit in decision.hits]
        )


def _ranking(heard: MemberReplies, query: str, fetch_k: int) -> Ranking:
    hits = heard.found[query][:fetch_k]
    floor = min(0.0, hits[-1][1]) if heard.declared.floor is None else heard.declared.floor
    candidates = tuple(Candidate(id=memory_id(document), score=score) for document, score in hits)
    return Ranking(leg=heard.name, floor=floor, candidates=candidates)


def _answerable(dataset: Dataset) -> list[str]:
    unanswerable = set(dataset.unanswerable)
    return [query.id for query in dataset.queries if query.id not in unanswerable]


def split_queries(queries: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the queries, depending only on their ids."""
    shuffled = sorted(queries, key=lambda query: hashlib.sha256(query.encode()).digest())
    return shuffled[::2], shuffled[1::2]


def _known(documents: set[str], reply: Reply) -> list[tuple[str, float]]:
    best: dict[str, float] = {}
    for hit in reply.hits:
        if hit.id in documents:
            best.setdefault(hit.id, hit.score)
    return list(best.items())


def _as_run(found: Mapping[str, Sequence[tuple[str, float]]]) -> Run:
    return {query: _strictly_decreasing(hits) for query, hits in found.items()}


def _strictly_decreasing(hits: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    return [(document, float(len(hits) - place)) for place, (document, _) in enumerate(hits)]


def _by_half(
    dataset: Dataset, run: Run, first: Sequence[str], second: Sequence[str]
) -> tuple[float, float]:
    values = measure(dataset, run, MEASURES).per_query[HEADLINE]
    on, out = (float(np.mean([values[query] for query in half])) for half in (first, second))
    return on, out


def _held_out(
    dataset: Dataset, against: str, base: Run, fused: Run, queries: Sequence[str]
) -> list[HeldOut]:
    before, after = (measure(dataset, run, MEASURES).per_query for run in (base, fused))
    compared = paired(
        {name: {query: before[name][query] for query in queries} for name in MEASURES},
        {name: {query: after[name][query] for query in queries} for name in MEASURES},
    )
    return [
        HeldOut(
            against=against,
            measure=one.measure,
            queries=one.queries,
            base=one.base,
            fused=one.candidate,
            difference=one.difference,
            low=one.low,
            high=one.high,
            p=one.p,
        )
        for one in compared
    ]
