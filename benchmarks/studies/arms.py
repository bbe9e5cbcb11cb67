"""Arms for the evidence: rankings of legs, fused without the steps that do not change their order.

With bonus 0, equal importances, no links and no folding, a recall answers in the order of the fusion; so a fusion can
be measured on kept rankings in a fraction of a millisecond a query. Everything else goes through the whole read path.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trivet.analyse import analyse_query
from trivet.lab.bench import Bench, memory_id
from trivet.lab.dataset import Query
from trivet.lab.measures import Measured, measure
from trivet.search.fuse import fuse, parse_pipeline
from trivet.search.recipe import Recipe, parse_recipe
from trivet.types import Candidate, Filter, Ranking

MEASURES = ("recall@5", "recall@10", "nDCG@10", "MRR", "any@5", "all@5")
DEEP = 20
STARTING_FUSION = "convex(norm=zscore)"
STARTING_STEPS = (
    "legs(lexical, dense)",
    "bm25(k1=1.2, b=0.75)",
    "depth(50)",
    "match(all-then-any)",
    "bonus(0)",
    "prior(0)",
)

Answer = list[tuple[str, float]]


def fused(bench: Bench, spec: str, replace: Mapping[str, Callable[[Query], Ranking]] | None = None) -> Measured:
    """Measures a recipe by its fusion alone; `replace` puts other rankings in a leg's place."""
    recipe = parse_recipe(completed(spec))
    run = {query.id: _order(bench, query, recipe, replace or {}) for query in bench.dataset.queries}
    return measure(bench.dataset, run, MEASURES)


def completed(spec: str) -> str:
    """The spec with a fixed starting point for every step it leaves out, so that later defaults change no figure."""
    names = {call.name for call in parse_pipeline(spec)}
    missing = [step for step in STARTING_STEPS if step.partition("(")[0] not in names]
    fusion = [] if names & {"rrf", "convex", "rsf", "dbsf", "tm2c2"} else [STARTING_FUSION]
    return " | ".join([*fusion, spec, *missing])


def _order(bench: Bench, query: Query, recipe: Recipe, replace: Mapping[str, Callable[[Query], Ranking]]) -> Answer:
    question = analyse_query(query.text)
    retrieved = bench.legs.retrieve(bench.trivet.engine, question, Filter(scope=query.scope), recipe)
    rankings = [
        _head(replace[one.leg](query), recipe.depth) if one.leg in replace else one for one in retrieved.rankings
    ]
    return [(bench.name_of(one.id), -float(rank)) for rank, one in enumerate(fuse(recipe.fusion, rankings)[:DEEP])]


def _head(ranking: Ranking, depth: int) -> Ranking:
    return Ranking(leg=ranking.leg, floor=ranking.floor, candidates=ranking.candidates[:depth])


class Vectors:
    """The stored vectors of a bench, to be searched in other ways than the product does."""

    def __init__(self, bench: Bench) -> None:
        engine = bench.trivet.engine
        self._embedding = engine.embedding
        model = engine.embedding.serving()
        assert model is not None
        self._model = model
        cache: Any = engine.store.vectors._cache  # type: ignore[attr-defined]
        matrix = cache._fresh(model)
        arrays = matrix._arrays.head(matrix.size)
        self.keys, self.ordinals, self.vectors = arrays.keys, arrays.ordinals, arrays.vectors
        ids = cache._ids.of(sorted({int(key) for key in self.keys}))
        self._ids = np.array([ids[int(key)] for key in self.keys])
        scopes = {memory_id(document.id): document.scope for document in bench.dataset.documents}
        self._scopes = np.array([scopes[id] or "" for id in self._ids])

    def ranking(
        self, query: Query, depth: int, vectors: NDArray[np.float32] | None = None, first_only: bool = False
    ) -> Ranking:
        """Exact search over these vectors, each memory by its best passage, or by its first alone."""
        matrix = self.vectors if vectors is None else vectors
        scores = matrix @ self._embedding.query_vector(self._model, query.text)
        shown = np.ones(len(scores), bool) if query.scope is None else self._scopes == query.scope
        if first_only:
            shown &= self.ordinals == 0
        best: dict[str, float] = {}
        for row in np.argsort(-np.where(shown, scores, -np.inf), kind="stable")[: depth * 4]:
            if shown[row]:
                best.setdefault(str(self._ids[row]), float(scores[row]))
        ordered = sorted(best.items(), key=lambda pair: (-pair[1], pair[0]))[:depth]
        candidates = tuple(Candidate(id=id, score=min(1.0, max(-1.0, score))) for id, score in ordered)
        return Ranking(leg="dense", floor=-1.0, candidates=candidates)


def as_int8(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """One byte a dimension, scaled to the largest of each vector."""
    scale = np.abs(vectors).max(axis=1, keepdims=True) / 127
    rounded: NDArray[np.float32] = np.round(vectors / scale) * scale
    return rounded


def plain_bm25(bench: Bench, depth: int = 50) -> Callable[[Query], Ranking]:
    """A plain bm25s index (English stemmer and stop words), one for each scope, as anyone would set it up."""
    import bm25s
    import Stemmer

    stemmer = Stemmer.Stemmer("english")
    by_scope: dict[str | None, list[tuple[str, str]]] = {}
    for document in bench.dataset.documents:
        text = f"{document.title}\n{document.text}" if document.title else document.text
        by_scope.setdefault(document.scope, []).append((memory_id(document.id), text))
        if document.scope is not None:
            by_scope.setdefault(None, []).append((memory_id(document.id), text))
    indexes: dict[str | None, tuple[Any, Sequence[str]]] = {}

    def index(scope: str | None) -> tuple[Any, Sequence[str]]:
        if scope not in indexes:
            ids, texts = zip(*by_scope[scope], strict=True)
            retriever = bm25s.BM25()
            retriever.index(
                bm25s.tokenize(list(texts), stopwords="en", stemmer=stemmer, show_progress=False), show_progress=False
            )
            indexes[scope] = (retriever, ids)
        return indexes[scope]

    def ranking(query: Query) -> Ranking:
        retriever, ids = index(query.scope)
        tokens = bm25s.tokenize(query.text, stopwords="en", stemmer=stemmer, show_progress=False)
        if not tokens.vocab:
            return Ranking(leg="lexical", floor=0.0)
        found, scores = retriever.retrieve(tokens, k=min(depth, len(ids)), show_progress=False)
        pairs = [(ids[int(one)], float(score)) for one, score in zip(found[0], scores[0], strict=True) if score > 0]
        pairs.sort(key=lambda pair: (-pair[1], pair[0]))
        return Ranking(leg="lexical", floor=0.0, candidates=tuple(Candidate(id=id, score=score) for id, score in pairs))

    return ranking
