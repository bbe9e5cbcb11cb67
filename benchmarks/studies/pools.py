"""What the legs found for a query, as numbers: one retrieval, any number of fusions.

Trivet's fusions add weighted columns: one leg's scores under one norm. So hundreds of weightings
are one matrix product and one sort per query. With bonus 0, prior 0, and no links or folding, a
recall has the same order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trivet.analyse import Question
from trivet.lab.datasets.catalog import IMPORTERS, find_dataset, import_original
from trivet.lab.datasets.dataset import Dataset, Query
from trivet.lab.measure.bench import Bench, memory_id
from trivet.search.fuse import Fusion, fuse
from trivet.search.fuse.methods import NORMALISERS
from trivet.search.query import ask
from trivet.search.recipe import DEFAULT, Recipe, parse_recipe
from trivet.types import Filter, Ranking

Values = NDArray[np.float64]
# A leg and its norm, such as `dense spread`, or `dense rank60`: 1 / (rank + 60).
Column = str

DEEP = 10
DISCOUNTS = 1 / np.log2(np.arange(2, DEEP + 2))


@dataclass(frozen=True)
class Pool:
    """A query's candidates in tie order, with their grades and lengths."""

    query: Query
    question: Question
    rankings: Sequence[Ranking]
    ids: tuple[str, ...]
    judged: Mapping[str, int]
    grades: Values
    lengths: Values
    ideal: float

    def column(self, name: Column) -> Values:
        leg, _, norm = name.partition(" ")
        ranking = next((one for one in self.rankings if one.leg == leg), None)
        if ranking is None or not ranking.candidates:
            return np.zeros(len(self.ids))
        scores, missing = _normalised(ranking, norm)
        present = dict(zip((one.id for one in ranking.candidates), scores, strict=True))
        return np.array([present.get(id, missing) for id in self.ids])

    def first(self, columns: Values, weights: Values) -> NDArray[np.intp]:
        """Return the positions of the first ten for each column of weights."""
        return np.argsort(-(columns @ weights), axis=0, kind="stable")[:DEEP]

    def shipped_scores(self) -> Values:
        parts = _parts(DEFAULT.fusion)
        scores: Values = np.column_stack([self.column(name) for name in parts]) @ np.array(
            list(parts.values())
        )
        return scores

    def worth(self, places: NDArray[np.intp]) -> Values:
        gains: Values = DISCOUNTS[: len(places)] @ self.grades[places] / self.ideal
        return gains

    def worth_of(self, ids: Sequence[str]) -> float:
        gains = [max(0, self.judged.get(id, 0)) for id in ids[:DEEP]]
        return float(DISCOUNTS[: len(gains)] @ np.array(gains, float) / self.ideal)


def dataset_named(name: str) -> Dataset:
    return import_original(name) if name in IMPORTERS else find_dataset(name)


def pools(bench: Bench, way: str) -> list[Pool]:
    """Return what the legs find for each question; the recipe's fusion is ignored."""
    recipe = parse_recipe(way) if way else DEFAULT
    found = [_pool(bench, query, recipe) for query in bench.dataset.queries]
    _check(found)
    return found


def measured(found: Sequence[Pool], fusions: Sequence[str]) -> Values:
    """Return nDCG@10: a row per question, a column per fusion."""
    parts = [_parts(parse_recipe(one).fusion) for one in fusions]
    names = sorted({name for part in parts for name in part})
    weights = np.array([[part.get(name, 0.0) for part in parts] for name in names])
    rows = []
    for pool in found:
        columns = np.column_stack([pool.column(name) for name in names])
        rows.append(
            pool.worth(pool.first(columns, weights)) if len(pool.ids) else np.zeros(len(fusions))
        )
    return np.array(rows)


def _parts(fusion: Fusion) -> dict[Column, float]:
    norm = (
        f"rank{float(fusion.options['k']):g}"
        if fusion.method == "rrf"
        else str(fusion.options["norm"])
    )
    return {
        f"{leg} {fusion.options.get(f'norm.{leg}', norm)}": fusion.weights.get(leg, 1.0)
        for leg in ("lexical", "dense", "graph")
    }


def _normalised(ranking: Ranking, norm: str) -> tuple[Sequence[float], float]:
    if norm.startswith("rank"):
        k = float(norm.removeprefix("rank"))
        return [1 / (k + rank) for rank in range(1, len(ranking.candidates) + 1)], 0.0
    one = NORMALISERS[norm](ranking)
    return one.scores, one.missing


def _pool(bench: Bench, query: Query, recipe: Recipe) -> Pool:
    engine, filter = bench.trivet.engine, Filter(scope=query.scope)
    with bench.clock_at_query_time(query):
        question = ask(engine.store, query.text, filter, recipe.bm25)
        rankings = bench.legs.retrieve(engine, question, filter, recipe).rankings
    ranked = sorted((rank, one.id) for part in rankings for rank, one in enumerate(part.candidates))
    ids = tuple(dict.fromkeys(id for _, id in ranked))
    judged = {memory_id(name): grade for name, grade in bench.dataset.grades[query.id].items()}
    best = sorted((max(0, grade) for grade in judged.values()), reverse=True)[:DEEP]
    return Pool(
        query=query,
        question=question,
        rankings=rankings,
        ids=ids,
        judged=judged,
        grades=np.array([max(0, judged.get(id, 0)) for id in ids], float),
        lengths=np.array([bench.words[bench.name_of(id)] for id in ids], float),
        ideal=float(np.array(best) @ DISCOUNTS[: len(best)]),
    )


FEATURES = (
    "rare words",
    "identifiers",
    "agreement",
    "words in the question",
    "variation of the lexical scores",
)
RARE = 0.01


def features(bench: Bench, found: Sequence[Pool]) -> dict[str, Values]:
    """Return features that may tell, before judging, which leg to trust for a question."""
    rows = np.array([_features(bench, pool) for pool in found])
    return dict(zip(FEATURES, rows.T, strict=True))


def _features(bench: Bench, pool: Pool) -> list[float]:
    filter, terms = Filter(scope=pool.query.scope), pool.question.terms
    store = bench.trivet.engine.store
    holders = store.lexical.holders(sorted(set(terms)), filter, DEFAULT.bm25)
    rare = RARE * store.memories.visible_count(filter)
    heads = {one.leg: [hit.id for hit in one.candidates[:DEEP]] for one in pool.rankings}
    lexical = np.array(
        [hit.score for one in pool.rankings if one.leg == "lexical" for hit in one.candidates]
    )
    return [
        sum(holders[term] <= rare for term in terms) / max(1, len(terms)),
        float(len(pool.question.identifiers)),
        float(len(set(heads.get("lexical", [])) & set(heads.get("dense", [])))),
        float(len(terms)),
        float(lexical.std() / lexical.mean()) if len(lexical) else 0.0,
    ]


def _check(found: Iterable[Pool]) -> None:
    """Check that the product's own fusion has the same first nine, except for rounding ties."""
    parts = _parts(DEFAULT.fusion)
    weights = np.array(list(parts.values()))[:, None]
    for pool in found:
        if not pool.ids:
            continue
        columns = np.column_stack([pool.column(name) for name in parts])
        ours = [pool.ids[place] for place in pool.first(columns, weights)[:, 0]]
        theirs = [one.id for one in fuse(DEFAULT.fusion, pool.rankings)[:DEEP]]
        if sorted(ours[:-1]) != sorted(theirs[:-1]):
            raise SystemExit(
                f"{pool.query.id}: the fusion of the study is not the product's: {ours} against "
                f"{theirs}."
            )
