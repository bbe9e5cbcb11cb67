"""Measures recipes on probes through the real read path, and finds the best."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from statistics import fmean, stdev

import msgspec

from trivet.contract import Recall, check
from trivet.lab.datasets.dataset import Dataset, Document, Judgement, Query
from trivet.lab.measure.complete_retrieval import CachedLegs, asked, require_complete
from trivet.lab.measure.gate import GATE_MEASURES
from trivet.lab.measure.measures import Measured, measure
from trivet.lab.tune.probes import Probe
from trivet.lab.tune.query_rules import LITERAL
from trivet.memory.answer.decision import Stopwatch
from trivet.memory.engine import Engine
from trivet.memory.recall import rank
from trivet.models.rerank.registry import AUTO
from trivet.search.fuse import Fusion, parse_fusion
from trivet.search.recipe import Recipe, parse_recipe

# As deep as the gate's measures look, and what an agent gets.
DEPTH = 10
# Probes that the plan's time estimate is based on.
TIMED = 10

Progress = Callable[[int], None]


class Scores:
    """Measured recipes, each run once over all probes."""

    def __init__(
        self, engine: Engine, probes: Sequence[Probe], progress: Progress | None = None
    ) -> None:
        self.probes = tuple(probes)
        self.progress = progress
        self._engine = engine
        self._legs = CachedLegs()
        self._questions = _dataset(
            probes, [memory.id for memory in engine.store.memories.everything()]
        )
        self._measured: dict[str, Measured] = {}

    def of(self, recipe: str) -> Measured:
        if recipe not in self._measured:
            run = {probe.id: self._ranked(probe, recipe) for probe in self.probes}
            self._measured[recipe] = measure(self._questions, run, GATE_MEASURES)
        return self._measured[recipe]

    def seconds_each(self, recipe: str) -> float:
        few = self.probes[:TIMED]
        for probe in few:
            self._ask(probe, recipe)  # fills the leg cache, which all recipes share
        started = time.perf_counter()
        for probe in few:
            self._ask(probe, recipe)
        return (time.perf_counter() - started) / max(len(few), 1) * len(self.probes)

    def _ranked(self, probe: Probe, recipe: str) -> list[tuple[str, float]]:
        ids = self._ask(probe, recipe)
        if self.progress is not None:
            self.progress(1)
        return [(id, -float(rank)) for rank, id in enumerate(ids)]

    def _ask(self, probe: Probe, recipe: str) -> list[str]:
        # The reranker that `auto` adds judges rather than finds and would take nearly all the time.
        # Hits are not collapsed.
        setting = self._engine.rerankers.setting.kind
        rerank = "off" if setting == AUTO and parse_recipe(recipe).rerank is None else None
        how = {"limit": DEPTH, "collapse": False, "relevance_at_least": 0.0, "rerank": rerank}
        request = check(Recall, {"query": probe.query, "recipe": recipe, **how})
        with asked(probe.id):
            decision = rank(self._engine, request, Stopwatch(), self._legs.retrieve)
            require_complete(decision)
        return [hit.memory.id for hit in decision.hits]


def _dataset(probes: Sequence[Probe], ids: Collection[str]) -> Dataset:
    """Use only ids of documents; measures need no texts."""
    return Dataset(
        name="probes",
        documents=tuple(Document(id=id, text="(in the store)") for id in ids),
        queries=tuple(Query(id=probe.id, text=probe.query, stratum=probe.kind) for probe in probes),
        judgements=tuple(
            Judgement(query=probe.id, document=id, grade=grade)
            for probe in probes
            for id, grade in probe.grades.items()
        ),
    )


OBJECTIVE = "nDCG@10"
# No kind of probe may lose more than this many standard errors of the difference to the present
# recipe: smaller losses are within chance.
TOLERATED_ERRORS = 1.0
# Smaller gains are not worth a change, and other probes would favor another recipe.
MIN_IMPROVEMENT = 0.002


class SearchSpace(msgspec.Struct, frozen=True, kw_only=True):
    """Values to try: fusions first, then the others in turn."""

    norms: tuple[str, ...] = ("zscore", "minmax", "dbsf")
    dense_weights: tuple[float, ...] = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
    spread_dense_weights: tuple[float, ...] = (3, 5, 8, 12, 20)
    graph_weights: tuple[float, ...] = (0, 4, 8, 12)
    ks: tuple[int, ...] = (10, 20, 60)
    rrf_dense_weights: tuple[float, ...] = (0.3, 0.5, 0.7)
    bs: tuple[float, ...] = (0.4, 0.75)
    depths: tuple[int, ...] = (20, 50, 100)
    bonuses: tuple[float, ...] = (0.0, 0.05, 0.1, 0.2)

    def fusions(self) -> Iterator[Fusion]:
        """Yield fusions; graph scores fit only `spread`, so others leave the graph out."""
        for norm in self.norms:
            for dense in self.dense_weights:
                yield parse_fusion(
                    f"convex(norm={norm}, lexical={1 - dense:g}, dense={dense:g}, graph=0)"
                )
        for dense in self.spread_dense_weights:
            for graph in self.graph_weights:
                weights = f"lexical=1, dense={dense:g}, graph={graph:g}"
                yield parse_fusion(f"convex(norm=spread, norm.graph=raw, {weights})")
        for k in self.ks:
            for dense in self.rrf_dense_weights:
                yield parse_fusion(f"rrf(k={k}, lexical={1 - dense:g}, dense={dense:g}, graph=0)")

    def steps(self, present: Recipe) -> Sequence[Callable[[Recipe], list[Recipe]]]:
        """Return a step per parameter, from a recipe to its neighbors."""
        fusions = list(self.fusions()) if len(present.legs) > 1 else []
        return (
            lambda recipe: [_with(recipe, fusion=fusion) for fusion in fusions],
            lambda recipe: [
                _with(recipe, bm25=msgspec.structs.replace(recipe.bm25, b=b)) for b in self.bs
            ],
            lambda recipe: [_with(recipe, depth=depth) for depth in self.depths],
            lambda recipe: [_with(recipe, bonus=bonus) for bonus in self.bonuses],
        )

    def most(self, present: Recipe, searches: int) -> int:
        """Return the maximum number of recipes that searches measure."""
        fusions, *others = (
            set(map(str, neighbours(present))) - {str(present)}
            for neighbours in self.steps(present)
        )
        return 1 + len(fusions) + searches * sum(map(len, others))


def search(
    scores: Scores, kinds: Mapping[str, Collection[str]], present: Recipe, space: SearchSpace
) -> Recipe:
    """Return the best recipe among those that lose in no kind of probe."""
    before = _by_kind(scores.of(str(present)), kinds)
    best, best_value = present, _worth(before)
    for neighbours in space.steps(present):
        for recipe in neighbours(best):
            after = _by_kind(scores.of(str(recipe)), kinds)
            value = _worth(after)
            if value > best_value + MIN_IMPROVEMENT and all(
                no_significant_loss(before[kind], after[kind]) for kind in kinds
            ):
                best, best_value = recipe, value
    return best


def no_significant_loss(before: Sequence[float], after: Sequence[float]) -> bool:
    """Return whether a kind lost no more than chance explains."""
    differences = [new - old for old, new in zip(before, after, strict=True)]
    error = stdev(differences) / math.sqrt(len(differences)) if len(differences) > 1 else 0.0
    return fmean(differences) >= -TOLERATED_ERRORS * error


def _worth(values: Mapping[str, Sequence[float]]) -> float:
    return worth({kind: fmean(of_kind) for kind, of_kind in values.items()})


def worth(by_kind: Mapping[str, float]) -> float:
    """Weigh literal and other kinds equally: either alone is one-sided."""
    literal = [value for kind, value in by_kind.items() if kind in LITERAL]
    free = [value for kind, value in by_kind.items() if kind not in LITERAL]
    return fmean(fmean(half) for half in (literal, free) if half)


def _by_kind(measured: Measured, kinds: Mapping[str, Collection[str]]) -> dict[str, list[float]]:
    values = measured.per_query[OBJECTIVE]
    return {kind: [values[id] for id in ids] for kind, ids in kinds.items()}


def _with(recipe: Recipe, **changes: object) -> Recipe:
    return msgspec.structs.replace(recipe, **changes)
