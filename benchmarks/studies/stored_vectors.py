"""The vectors of a loaded dataset, for searches the product does not make."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trivet.lab.datasets.dataset import Query
from trivet.lab.measure.bench import Bench, memory_id
from trivet.types import Candidate, Ranking


class Vectors:
    def __init__(self, bench: Bench) -> None:
        engine = bench.trivet.engine
        self._embedding = engine.embedding
        model = engine.embedding.serving()
        assert model is not None
        self._model = model
        cache: Any = engine.store.vectors._cache  # type: ignore[attr-defined]
        matrix = cache.matrix(model)
        arrays = matrix._arrays.head(matrix.size)
        self.keys, self.ordinals, self.vectors = arrays.keys, arrays.ordinals, arrays.vectors
        ids = cache._ids.of(sorted({int(key) for key in self.keys}))
        self._ids = np.array([ids[int(key)] for key in self.keys])
        scopes = {memory_id(document.id): document.scope for document in bench.dataset.documents}
        self._scopes = np.array([scopes[id] or "" for id in self._ids])

    def ranking(
        self,
        query: Query,
        depth: int,
        vectors: NDArray[np.float32] | None = None,
        first_only: bool = False,
    ) -> Ranking:
        """Search exactly, by each memory's best passage or only its first."""
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
        candidates = tuple(
            Candidate(id=id, score=min(1.0, max(-1.0, score))) for id, score in ordered
        )
        return Ranking(leg="dense", floor=-1.0, candidates=candidates)


def as_int8(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Quantize to one byte per dimension, scaled to each vector's largest value."""
    scale = np.abs(vectors).max(axis=1, keepdims=True) / 127
    rounded: NDArray[np.float32] = np.round(vectors / scale) * scale
    return rounded
