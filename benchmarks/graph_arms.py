"""Arms of the graph's evidence: two legs retrieved once, walked on from in many ways, fused in many more.

As in arms.py a fusion is measured on kept rankings, without the steps that do not change its order. Walks are made
anew for each way of walking, through the read path's own function, and only the last one is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from trivet.analyse import Question, analyse_query
from trivet.lab.bench import Bench
from trivet.lab.compare import Comparison, paired
from trivet.lab.dataset_types import Dataset, Query
from trivet.lab.measures import Measured, measure
from trivet.memory.answer.decision import Retrieved
from trivet.memory.recall import search_on
from trivet.search.fuse import fuse
from trivet.search.legs import seeds as graph_seeds
from trivet.search.legs.leg import LegQuery
from trivet.search.recipe import Recipe, parse_recipe
from trivet.store.base import Seeds
from trivet.types import Filter, Ranking

MEASURES = ("nDCG@10", "recall@5", "recall@10", "all@10")
COMPARED = ("nDCG@10", "recall@10")
DEEP = 20
STEPS = "bm25(k1=0.9, b=0.4) | match(all-then-any) | depth(50) | bonus(0) | prior(0)"
TWO_LEGS = "convex(norm=spread, lexical=1, dense=8)"
GRAPH_ONLY = "convex(norm=raw, lexical=0, dense=0, graph=1)"
# The walk where the query names nothing too, which the product leaves alone.
EVERYWHERE = "everywhere"

Row = dict[str, Any]
Reshape = Callable[[Ranking], Ranking]


class Asked(msgspec.Struct, frozen=True):
    """A query with what the two legs found for it."""

    query: Query
    question: Question
    filter: Filter
    found: Retrieved


class Arms:
    """One corpus: ask for any number of arms, then compare them all at once."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._asked = [self._ask(query) for query in bench.dataset.queries]
        self._walks: dict[str, list[Ranking]] = {}

    def two_legs(self, fusion: str = TWO_LEGS) -> Measured:
        return self._measured(fusion, [Ranking(leg="graph", floor=0.0)] * len(self._asked))

    def three_legs(self, fusion: str, walk: str = "walk()", reshape: Reshape | None = None) -> Measured:
        graphs = self.walks(walk)
        return self._measured(fusion, [reshape(one) for one in graphs] if reshape else graphs)

    def walks(self, walk: str = "walk()") -> list[Ranking]:
        """The graph leg's ranking for every query."""
        if walk not in self._walks:
            everywhere = walk == EVERYWHERE
            recipe = parse_recipe(f"{TWO_LEGS} | {'walk(named=0)' if everywhere else walk} | {STEPS}")
            self._walks = {walk: [self._walk(asked, recipe, everywhere) for asked in self._asked]}
        return self._walks[walk]

    def silent(self, walk: str = "walk()") -> set[str]:
        """The queries for which the graph leg has nothing to say."""
        return {asked.query.id for asked, one in zip(self._asked, self.walks(walk), strict=True) if not one.candidates}

    def spoke(self, walk: str = "walk()") -> float:
        return 1 - len(self.silent(walk)) / len(self._asked)

    def answers(self, fusion: str, walk: str | None = "walk()") -> dict[str, list[str]]:
        """The documents of each query in order, best first."""
        silent = [Ranking(leg="graph", floor=0.0)] * len(self._asked)
        return {
            query: [name for name, _ in found]
            for query, found in self._run(fusion, silent if walk is None else self.walks(walk))
        }

    def pools(self) -> dict[str, set[str]]:
        """All that the two legs returned for each query."""
        return {
            asked.query.id: {
                self.bench.name_of(one.id) for ranking in asked.found.rankings for one in ranking.candidates
            }
            for asked in self._asked
        }

    def _ask(self, query: Query) -> Asked:
        question, filter = analyse_query(query.text), Filter(scope=query.scope)
        recipe = parse_recipe(f"{TWO_LEGS} | legs(lexical, dense) | {STEPS}")
        return Asked(
            query, question, filter, self.bench.legs.retrieve(self.bench.trivet.engine, question, filter, recipe)
        )

    def _walk(self, asked: Asked, recipe: Recipe, everywhere: bool) -> Ranking:
        if asked.found.narrowed:
            return Ranking(leg="graph", floor=0.0)
        engine = self.bench.trivet.engine
        query = LegQuery(engine.store, engine.embedding, asked.question, asked.filter, recipe)
        walked = search_on(engine, query, asked.found)
        ranking = next(one for one in walked.rankings if one.leg == "graph")
        if everywhere and not ranking.candidates:
            hits, standing_out = graph_seeds._hits(asked.found.rankings, recipe.walk)
            seeds = Seeds({id: standing_out * recipe.walk.hits * share for id, share in hits.items()}, {})
            found = engine.store.graph.walk(seeds, asked.filter, recipe.walk, recipe.depth)
            return Ranking(leg="graph", floor=0.0, candidates=tuple(found))
        return ranking

    def _measured(self, fusion: str, graphs: Sequence[Ranking]) -> Measured:
        return measure(self.bench.dataset, dict(self._run(fusion, graphs)), MEASURES)

    def _run(self, fusion: str, graphs: Sequence[Ranking]) -> Iterable[tuple[str, list[tuple[str, float]]]]:
        recipe = parse_recipe(f"{fusion} | {STEPS}")
        for asked, graph in zip(self._asked, graphs, strict=True):
            fused = fuse(recipe.fusion, [*asked.found.rankings, graph])[:DEEP]
            yield asked.query.id, [(self.bench.name_of(one.id), -float(rank)) for rank, one in enumerate(fused)]


def three(weight: float, norm: str = "raw") -> str:
    return f"convex(norm=spread, norm.graph={norm}, lexical=1, dense=8, graph={weight:g})"


def rows(arms: Mapping[str, Measured], bases: Mapping[str, Measured]) -> dict[str, Row]:
    """Each arm's means, and its differences from its base with their intervals.

    All are compared in one go: the resamples are the same for every arm, and made once.
    """
    before = {f"{arm}\t{name}": bases[arm].per_query[name] for arm in arms for name in COMPARED}
    after = {f"{arm}\t{name}": one.per_query[name] for arm, one in arms.items() for name in COMPARED}
    compared = {one.measure: one for one in paired(before, after)}
    return {
        arm: {
            "means": {name: round(value, 4) for name, value in one.overall.items()},
            **{name: difference(compared[f"{arm}\t{name}"]) for name in COMPARED},
        }
        for arm, one in arms.items()
    }


def difference(one: Comparison) -> Row:
    figures = {"difference": one.difference, "low": one.low, "high": one.high, "p": one.p}
    return {name: round(value, 5) for name, value in figures.items()} | {"wins": one.wins, "losses": one.losses}


def fewer(dataset: Dataset, queries: int) -> Dataset:
    """The same corpus with the first queries alone: a trial, not a result."""
    kept = dataset.queries[:queries]
    ids = {query.id for query in kept}
    judged = tuple(row for row in dataset.judgements if row.query in ids)
    return Dataset(name=dataset.name, documents=dataset.documents, queries=kept, judgements=judged)
