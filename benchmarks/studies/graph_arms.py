"""Arms of the graph study: two legs retrieved once, many walks from them, and many fusions.

As in pools.py, a fusion is measured on stored rankings, without steps that keep the order. Walks
use the read path's function; only the latest is cached.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from stored_vectors import Vectors

from trivet.analyse import Question
from trivet.lab.datasets.dataset import RELEVANT, Dataset, Query
from trivet.lab.measure.bench import Bench, memory_id, open_bench
from trivet.lab.measure.comparison import Comparison, correct, paired
from trivet.lab.measure.measures import Measured, measure
from trivet.memory.answer.decision import Retrieved
from trivet.memory.answer.retrieve import run_dependent_legs
from trivet.search.fuse import fuse
from trivet.search.legs.leg import LegQuery
from trivet.search.query import ask
from trivet.search.recipe import DEFAULT, Recipe, parse_recipe
from trivet.settings import Settings
from trivet.trivet import Trivet
from trivet.types import Filter, Ranking

MEASURES = ("nDCG@10", "recall@5", "recall@10", "all@10")
COMPARED = ("nDCG@10", "recall@10")
DEEP = 20
STEPS = "bonus(0) | prior(0)"
SHIPPED = DEFAULT.fusion.weights
TWO_LEGS = "convex(norm=spread, lexical={lexical:g}, dense={dense:g}, graph=0)".format(**SHIPPED)
GRAPH_ONLY = "convex(norm=raw, lexical=0, dense=0, graph=1)"

Row = dict[str, Any]


class Asked(msgspec.Struct, frozen=True):
    query: Query
    question: Question
    filter: Filter
    found: Retrieved


class Arms:
    """One corpus: request any number of arms, then compare them all at once."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self._asked = [self._ask(query) for query in bench.dataset.queries]
        self._walks: dict[str, list[Ranking]] = {}

    def two_legs(self, fusion: str = TWO_LEGS) -> Measured:
        return self._measured(fusion, [Ranking(leg="graph", floor=0.0)] * len(self._asked))

    def three_legs(self, fusion: str, walk: str = "walk()") -> Measured:
        return self._measured(fusion, self.walks(walk))

    def walks(self, walk: str = "walk()") -> list[Ranking]:
        if walk not in self._walks:
            recipe = parse_recipe(f"{TWO_LEGS} | {walk} | {STEPS}")
            self._walks = {walk: [self._walk(asked, recipe) for asked in self._asked]}
        return self._walks[walk]

    def spoke(self) -> float:
        """Return the share of queries for which the graph leg finds something."""
        walks = self.walks()
        return sum(bool(one.candidates) for one in walks) / len(walks)

    def answers(self, fusion: str, walk: str | None = "walk()") -> dict[str, list[str]]:
        silent = [Ranking(leg="graph", floor=0.0)] * len(self._asked)
        return {
            query: [name for name, _ in found]
            for query, found in self._run(fusion, silent if walk is None else self.walks(walk))
        }

    def pools(self) -> dict[str, set[str]]:
        return {
            asked.query.id: {
                self.bench.name_of(one.id)
                for ranking in asked.found.rankings
                for one in ranking.candidates
            }
            for asked in self._asked
        }

    def _ask(self, query: Query) -> Asked:
        filter = Filter(scope=query.scope)
        question = ask(self.bench.trivet.engine.store, query.text, filter, DEFAULT.bm25)
        recipe = parse_recipe(f"{TWO_LEGS} | legs(lexical, dense) | {STEPS}")
        return Asked(
            query,
            question,
            filter,
            self.bench.legs.retrieve(self.bench.trivet.engine, question, filter, recipe),
        )

    def _walk(self, asked: Asked, recipe: Recipe) -> Ranking:
        if asked.found.narrowed:
            return Ranking(leg="graph", floor=0.0)
        engine = self.bench.trivet.engine
        query = LegQuery(engine.store, engine.embedding, asked.question, asked.filter, recipe)
        walked = run_dependent_legs(engine, query, asked.found)
        return next(one for one in walked.rankings if one.leg == "graph")

    def _measured(self, fusion: str, graphs: Sequence[Ranking]) -> Measured:
        return measure(self.bench.dataset, dict(self._run(fusion, graphs)), MEASURES)

    def _run(
        self, fusion: str, graphs: Sequence[Ranking]
    ) -> Iterable[tuple[str, list[tuple[str, float]]]]:
        recipe = parse_recipe(f"{fusion} | {STEPS}")
        for asked, graph in zip(self._asked, graphs, strict=True):
            fused = fuse(recipe.fusion, [*asked.found.rankings, graph])[:DEEP]
            yield (
                asked.query.id,
                [(self.bench.name_of(one.id), -float(rank)) for rank, one in enumerate(fused)],
            )


def three(weight: float, norm: str = "raw") -> str:
    legs = "lexical={lexical:g}, dense={dense:g}".format(**SHIPPED)
    return f"convex(norm=spread, norm.graph={norm}, {legs}, graph={weight:g})"


def rows(arms: Mapping[str, Measured], bases: Mapping[str, Measured]) -> dict[str, Row]:
    """Return each arm's means, and its differences from its base.

    All arms share the resamples, which are made once.
    """
    before = {f"{arm}\t{name}": bases[arm].per_query[name] for arm in arms for name in COMPARED}
    after = {
        f"{arm}\t{name}": one.per_query[name] for arm, one in arms.items() for name in COMPARED
    }
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
    return {name: round(value, 5) for name, value in figures.items()} | {
        "wins": one.wins,
        "losses": one.losses,
    }


def open_without_links(dataset: Dataset, cache: Path, folder: Path, embedder: str) -> Trivet:
    """Copy the dataset's store without links. It is not a bench, which would restore them."""
    with open_bench(dataset, cache, embedder) as bench:
        path = folder / Path(bench.trivet.settings.path).name
        bench.trivet.engine.store.upkeep.backup(path)
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM link")
    connection.close()
    return Trivet.open(settings=Settings(path=str(path), embedder=embedder, background=False))


TOP = 10
POOL = 50


@dataclass(frozen=True)
class Farthest:
    """The relevant passage least similar to its query: its cosine, and its rank by cosine."""

    document: str
    cosine: float
    rank: int


def relevant(dataset: Dataset) -> dict[str, list[str]]:
    unanswerable = set(dataset.unanswerable)
    return {
        query: [document for document, grade in judged.items() if grade >= RELEVANT]
        for query, judged in dataset.grades.items()
        if query not in unanswerable
    }


def farthest_hops(bench: Bench) -> dict[str, Farthest]:
    """Find it for each query of an unscoped corpus, by exact search over best passages."""
    vectors = Vectors(bench)
    ids, place = np.unique(vectors._ids, return_inverse=True)
    row_of = {str(id): row for row, id in enumerate(ids)}
    model = bench.trivet.engine.embedding.serving()
    assert model is not None
    wanted = relevant(bench.dataset)
    found: dict[str, Farthest] = {}
    for query in bench.dataset.queries:
        if query.id not in wanted:
            continue
        cosines = np.full(len(ids), -1.0)
        np.maximum.at(
            cosines,
            place,
            vectors.vectors @ bench.trivet.engine.embedding.query_vector(model, query.text),
        )
        document = min(
            wanted[query.id], key=lambda one: (float(cosines[row_of[memory_id(one)]]), one)
        )
        cosine = float(cosines[row_of[memory_id(document)]])
        found[query.id] = Farthest(document, cosine, int(np.count_nonzero(cosines > cosine)) + 1)
    return found


def by_nearness(hops: Mapping[str, Farthest]) -> dict[str, tuple[str, ...]]:
    """Split by cosine into thirds, with the rank plain vector search gives the farthest hop."""
    ordered = sorted(hops, key=lambda query: (-hops[query].cosine, query))
    cuts = [round(len(ordered) * part / 3) for part in range(4)]
    thirds = {
        f"farthest hop {name} by cosine": tuple(ordered[cuts[part] : cuts[part + 1]])
        for part, name in enumerate(("nearest third", "middle third", "farthest third"))
    }
    ranked = {
        f"farthest hop in the dense top {TOP}": tuple(
            query for query in hops if hops[query].rank <= TOP
        ),
        f"farthest hop at dense rank {TOP + 1} to {POOL}": tuple(
            q for q in hops if TOP < hops[q].rank <= POOL
        ),
        f"farthest hop below dense rank {POOL}": tuple(
            query for query in hops if hops[query].rank > POOL
        ),
    }
    return {name: queries for name, queries in (thirds | ranked).items() if queries}


def moved(
    wanted: Mapping[str, Sequence[str]],
    queries: Sequence[str],
    before: Mapping[str, Sequence[str]],
    after: Mapping[str, Sequence[str]],
    pools: Mapping[str, set[str]],
) -> dict[str, int]:
    """Return relevant passages that entered or left the top ten, and those no leg had."""
    counts = {
        "relevant": 0,
        "missed by two legs": 0,
        "brought in": 0,
        "pushed out": 0,
        "out of pool": 0,
        "from nowhere": 0,
    }
    for query in queries:
        had, has = set(before[query][:TOP]), set(after[query][:TOP])
        for document in wanted[query]:
            counts["relevant"] += 1
            counts["missed by two legs"] += document not in had
            counts["brought in"] += document in has and document not in had
            counts["pushed out"] += document in had and document not in has
            counts["out of pool"] += document not in pools[query]
            counts["from nowhere"] += document in has and document not in pools[query]
    return counts


def compared(
    base: Measured, candidate: Measured, strata: Mapping[str, Sequence[str]]
) -> dict[str, Row]:
    """Return differences per stratum, with p corrected over strata and both measures."""
    family = [
        one
        for name, queries in strata.items()
        for one in paired(
            {
                measure: {query: base.per_query[measure][query] for query in queries}
                for measure in COMPARED
            },
            {
                measure: {query: candidate.per_query[measure][query] for query in queries}
                for measure in COMPARED
            },
            stratum=name,
        )
    ]
    table: dict[str, Row] = {name: {"queries": len(queries)} for name, queries in strata.items()}
    for one in correct(family):
        figures = difference(one) | {
            "base": round(one.base, 4),
            "candidate": round(one.candidate, 4),
        }
        table[str(one.stratum)][one.measure] = figures | {"corrected_p": round(one.corrected_p, 5)}
    return table
