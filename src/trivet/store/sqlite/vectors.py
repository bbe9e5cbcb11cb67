"""Vectors in the database, searched in memory; the matrix of each model is loaded on first use and kept fresh."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trivet.errors import EmbedderError
from trivet.store.base import Model
from trivet.store.relational.changes import Changes
from trivet.store.relational.identity import Identities
from trivet.store.relational.models import Models
from trivet.store.relational.rows import as_json
from trivet.store.relational.visible import Visibility
from trivet.store.sqlite.database import Database
from trivet.store.sqlite.matrix import Matrix
from trivet.types import Candidate, Filter

# A matrix with more removed rows than this share of it is loaded afresh, which packs it.
REMOVED_SHARE = 0.25


class _Loaded:
    def __init__(self, sequence: int, matrix: Matrix) -> None:
        self.sequence = sequence
        self.matrix = matrix


class SqliteVectorIndex(Models):
    def __init__(self, database: Database, visibility: Visibility, changes: Changes, identities: Identities) -> None:
        super().__init__(database)
        self._visibility = visibility
        self._changes = changes
        self._identities = identities
        self._loaded: dict[int, _Loaded] = {}
        self._lock = threading.Lock()

    def search(self, model: Model, vector: NDArray[np.float32], filter: Filter, depth: int) -> list[Candidate]:
        if vector.shape != (model.dimension,):
            raise EmbedderError(
                f"The query's vector has {vector.shape[-1]} dimensions and the stored vectors of {model.identity} have "
                f"{model.dimension}. The embedder has changed; run `trivet reindex --vectors`."
            )
        matrix = self._fresh(model)
        found = matrix.search(vector.astype(np.float32), self._visibility.of(filter).mask, depth)
        ids = self._identities.of(found.keys.tolist())
        ranked = [
            Candidate(id=ids[key], score=max(-1.0, min(1.0, score)), passage=ordinal)
            for key, ordinal, score in zip(
                found.keys.tolist(), found.ordinals.tolist(), found.scores.tolist(), strict=True
            )
            if key in ids
        ]
        ranked.sort(key=lambda candidate: (-candidate.score, candidate.id))
        return ranked[:depth]

    def _fresh(self, model: Model) -> Matrix:
        with self._lock:
            loaded = self._loaded.get(model.model)
            changed = self._changes.since(loaded.sequence) if loaded else None
            if loaded is None or changed is None or loaded.matrix.removed > REMOVED_SHARE * loaded.matrix.size + 1000:
                loaded = self._load(model)
                self._loaded = {model.model: loaded}
            elif changed:
                self._catch_up(model, loaded.matrix, {key for _, key in changed})
                loaded.sequence = changed[-1][0]
            return loaded.matrix

    def _load(self, model: Model) -> _Loaded:
        sequence = self._changes.last()
        matrix = Matrix(model.dimension)
        with self._database.errors():
            rows = self._database.read().execute(self._sql["all_vectors"], {"model": model.model}).fetchall()
        self._append(matrix, rows)
        return _Loaded(sequence, matrix)

    def _catch_up(self, model: Model, matrix: Matrix, keys: set[int]) -> None:
        for key in keys:
            matrix.remove(key)
        parameters = {"model": model.model, "keys": as_json(keys)}
        with self._database.errors():
            rows = self._database.read().execute(self._sql["vectors_of"], parameters).fetchall()
        self._append(matrix, rows)

    def _append(self, matrix: Matrix, rows: Sequence[tuple[int, int, bytes]]) -> None:
        if not rows:
            return
        keys, ordinals, blobs = zip(*rows, strict=True)
        flat = np.frombuffer(b"".join(blobs), np.float16).astype(np.float32)
        if len(flat) != len(rows) * matrix.dimension:
            raise EmbedderError(
                f"Stored vectors do not have {matrix.dimension} dimensions. Run `trivet reindex --vectors`."
            )
        matrix.add(list(keys), list(ordinals), flat.reshape(-1, matrix.dimension))
