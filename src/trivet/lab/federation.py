"""Another system beside Trivet on one dataset: where their hits overlap, and what fusing them is worth.

How many of its hits to fetch and how much they weigh is chosen on one half of the queries and reported on the other.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec
import numpy as np

from trivet.analyse import Question, analyse_query
from trivet.contract import Recall, check
from trivet.errors import InvalidInput, LegFailed
from trivet.lab.bench import Bench, memory_id
from trivet.lab.compare import CONFIDENCE, HEADLINE, RESAMPLES, paired
from trivet.lab.dataset import RELEVANT, Dataset
from trivet.lab.measures import Run, measure
from trivet.lab.run import environment
from trivet.lab.significance import bootstrap_means, intervals
from trivet.memory.answer.decision import Retrieved
from trivet.memory.engine import Engine
from trivet.memory.federation.other_trivet import OtherTrivet
from trivet.memory.federation.recall import asked_of, with_systems
from trivet.memory.recall import Stopwatch, decide
from trivet.search.recipe import Recipe, parse_recipe
from trivet.search.systems.reply import Reply
from trivet.search.systems.systems import Systems
from trivet.settings.systems import OtherSystem
from trivet.types import Candidate, Filter, Progress, Ranking

MEASURES = (HEADLINE, "recall@10", "MRR")
FETCH_K = (10, 30, 100)
WEIGHTS = (1.0, 2.0, 4.0, 8.0)
# As deep as any of the measures looks.
MEASURED_DEPTH = 10


class Share(msgspec.Struct, frozen=True):
    """A mean over queries with its interval."""

    mean: float
    low: float
    high: float


class Overlap(msgspec.Struct, frozen=True, kw_only=True):
    """Shares of the queries for which Trivet, the member, both or neither have something relevant among the first k.

    `recall_union` is the most that a fusion of the two could reach.
    """

    k: int
    both: Share
    only_trivet: Share
    only_member: Share
    neither: Share
    recall_trivet: Share
    recall_member: Share
    recall_union: Share


class FusedPoint(msgspec.Struct, frozen=True, kw_only=True):
    """One number of hits fetched and one weight, by its headline on either half of the queries."""

    fetch_k: int
    weight: float
    chosen_on: float
    held_out: float


class HeldOut(msgspec.Struct, frozen=True, kw_only=True):
    """The chosen point against Trivet alone, or against the member alone, on queries that had no part in the choice."""

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
    silent: int  # queries for which the member found nothing
    unknown: int  # hits whose ids the dataset does not have
    overlap: Overlap
    points: list[FusedPoint]
    chosen: FusedPoint
    held_out: list[HeldOut]
    took_ms: dict[str, float]
    environment: dict[str, Any]


def measure_federation(
    bench: Bench,
    name: str,
    member: OtherSystem,
    config: str,
    fetch_k: Sequence[int] = FETCH_K,
    weights: Sequence[float] = WEIGHTS,
    k: int = 10,
    progress: Progress | None = None,
) -> Federation:
    deep = msgspec.structs.replace(member, fetch_k=max(*fetch_k, k), enabled=True)
    replies, took = ask_all(bench, name, deep, progress)
    found = {query: _known(bench.dataset, reply) for query, reply in replies.items()}
    asking = Asking(bench, name, deep, config, found, k)
    alone, apart = asking.run(0, 0.0), _as_run(found)
    first, second = halves([query for query in found if query not in set(bench.dataset.unanswerable)])
    runs = {point: asking.run(*point) for point in itertools.product(fetch_k, weights)}
    points = {point: _by_half(bench.dataset, run, first, second) for point, run in runs.items()}
    serving = bench.trivet.engine.embedding.serving()
    # Of equals the one that costs least.
    best = max(points, key=lambda point: (points[point][0], -point[0], -point[1]))
    swept = [FusedPoint(fetch_k=at[0], weight=at[1], chosen_on=on, held_out=out) for at, (on, out) in points.items()]
    return Federation(
        dataset=bench.dataset.name,
        dataset_sha256=bench.dataset.fingerprint,
        member=name,
        declared=msgspec.to_builtins(member),
        recipe=str(parse_recipe(config)),
        embedder=serving.identity if serving else None,
        queries=len(first) + len(second),
        silent=sum(not reply.hits for reply in replies.values()),
        unknown=sum(len(reply.hits) for reply in replies.values()) - sum(len(hits) for hits in found.values()),
        overlap=overlap(bench.dataset, alone, apart, k),
        points=sorted(swept, key=lambda point: -point.chosen_on),
        chosen=next(point for point in swept if (point.fetch_k, point.weight) == best),
        held_out=[
            *_held_out(bench.dataset, "trivet", alone, runs[best], second),
            *_held_out(bench.dataset, name, apart, runs[best], second),
        ],
        took_ms={"p50": float(np.median(took)), "p95": float(np.quantile(took, 0.95))},
        environment=environment(),
    )


def ask_all(
    bench: Bench, name: str, member: OtherSystem, progress: Progress | None = None
) -> tuple[dict[str, Reply], list[float]]:
    """Asks the member every query. A query without an answer is an error: the figures would mislead."""
    members = Systems({name: member})
    replies: dict[str, Reply] = {}
    took: list[float] = []
    try:
        for query in bench.dataset.queries:
            started = time.monotonic()
            asked = asked_of(analyse_query(query.text))
            futures = members.start({name: member}, asked, lambda one: OtherTrivet(bench.trivet.settings, one))
            (heard,) = members.collect(futures, started)
            if heard.reply is None:
                raise LegFailed(f"{name} did not answer query {query.id}: {heard.health.reason}")
            replies[query.id] = heard.reply
            took.append(heard.health.took_ms)
            if progress is not None:
                progress(1)
    finally:
        members.close()
    if not any(reply.hits for reply in replies.values()):
        raise InvalidInput(
            f"{name} found nothing for any query of {bench.dataset.name}: does it search these documents?"
        )
    return replies, took


class Asking:
    """Runs the dataset with the member's hits as one more leg, without asking the member again."""

    def __init__(
        self,
        bench: Bench,
        name: str,
        member: OtherSystem,
        config: str,
        found: Mapping[str, Sequence[tuple[str, float]]],
        k: int,
    ) -> None:
        self._bench = bench
        self._name = name
        self._member = member
        self._recipe = parse_recipe(config, (name,))
        self._found = found
        self._depth = max(k, MEASURED_DEPTH)
        # The bench's own settings declare no members, and a recipe may name only those that are declared.
        self._engine = msgspec.structs.replace(bench.trivet.engine, systems=Systems({name: member}))

    def run(self, fetch_k: int, weight: float) -> Run:
        """With no hits fetched it is Trivet alone."""
        member = msgspec.structs.replace(self._member, weight=weight)
        recipe = str(with_systems(self._recipe, {self._name: member}) if fetch_k else self._recipe)
        return {query.id: self._ranked(query.id, query.text, query.scope, recipe, fetch_k) for query in self._queries}

    @property
    def _queries(self) -> Sequence[Any]:
        return self._bench.dataset.queries

    def _ranked(self, id: str, text: str, scope: str | None, recipe: str, fetch_k: int) -> list[tuple[str, float]]:
        hits = self._found[id][:fetch_k]

        def retrieve(engine: Engine, question: Question, filter: Filter, how: Recipe) -> Retrieved:
            own = self._bench.legs.retrieve(engine, question, filter, how)
            if not hits:
                return own
            candidates = tuple(Candidate(id=memory_id(document), score=score) for document, score in hits)
            floor = min(0.0, hits[-1][1]) if self._member.floor is None else self._member.floor
            ranking = Ranking(leg=self._name, floor=floor, candidates=candidates)
            return msgspec.structs.replace(own, rankings=[*own.rankings, ranking])

        whole = {"limit": self._depth, "collapse": False, "relevance_at_least": 0.0}
        arguments = {"query": text, "scope": scope, "recipe": recipe, **whole}
        decision = decide(self._engine, check(Recall, arguments), Stopwatch(), retrieve)
        return _falling([(self._bench.name_of(hit.memory.id), hit.score) for hit in decision.hits])


def overlap(dataset: Dataset, trivet: Run, member: Run, k: int) -> Overlap:
    rows = []
    for query, judged in dataset.grades.items():
        relevant = {document for document, grade in judged.items() if grade >= RELEVANT}
        if not relevant:
            continue
        ours, theirs = ({document for document, _ in run[query][:k]} & relevant for run in (trivet, member))
        hit = (bool(ours), bool(theirs))
        found = [len(part) / len(relevant) for part in (ours, theirs, ours | theirs)]
        rows.append([hit == (True, True), hit == (True, False), hit == (False, True), hit == (False, False), *found])
    columns = np.array(rows, dtype=np.float64)
    bounds = intervals(bootstrap_means(columns, RESAMPLES, 0), CONFIDENCE)
    shares = [Share(float(mean), *bound) for mean, bound in zip(columns.mean(axis=0), bounds, strict=True)]
    both, only_trivet, only_member, neither, ours_, theirs_, union = shares
    return Overlap(
        k=k,
        both=both,
        only_trivet=only_trivet,
        only_member=only_member,
        neither=neither,
        recall_trivet=ours_,
        recall_member=theirs_,
        recall_union=union,
    )


def halves(queries: Sequence[str]) -> tuple[list[str], list[str]]:
    """Two halves that depend on nothing but the queries' ids."""
    shuffled = sorted(queries, key=lambda query: hashlib.sha256(query.encode()).digest())
    return shuffled[::2], shuffled[1::2]


def _known(dataset: Dataset, reply: Reply) -> list[tuple[str, float]]:
    """Its hits under the dataset's ids, each document once."""
    documents = {document.id for document in dataset.documents}
    best: dict[str, float] = {}
    for hit in reply.hits:
        if hit.id in documents:
            best.setdefault(hit.id, hit.score)
    return list(best.items())


def _as_run(found: Mapping[str, Sequence[tuple[str, float]]]) -> Run:
    return {query: _falling(hits) for query, hits in found.items()}


def _falling(hits: Sequence[tuple[str, float]]) -> list[tuple[str, float]]:
    """The order as scores without ties, so that no other tool can order it differently."""
    return [(document, float(len(hits) - place)) for place, (document, _) in enumerate(hits)]


def _by_half(dataset: Dataset, run: Run, first: Sequence[str], second: Sequence[str]) -> tuple[float, float]:
    values = measure(dataset, run, MEASURES).per_query[HEADLINE]
    on, out = (float(np.mean([values[query] for query in half])) for half in (first, second))
    return on, out


def _held_out(dataset: Dataset, against: str, base: Run, fused: Run, queries: Sequence[str]) -> list[HeldOut]:
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
