"""Vectors in the database, searched in memory; the matrix of each model is loaded on first use and kept fresh."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trivet.errors import EmbedderError
from trivet.store.base import Model, Passage
from trivet.store.sqlite.changes import Changes
from trivet.store.sqlite.database import Database
from trivet.store.sqlite.identity import Identities
from trivet.store.sqlite.matrix import Matrix
from trivet.store.sqlite.queries import queries
from trivet.store.sqlite.rows import as_json
from trivet.store.sqlite.visible import Visibility
from trivet.types import Candidate, Filter

# A matrix with more removed rows than this share of it is loaded afresh, which packs it.
REMOVED_SHARE = 0.25


class _Loaded:
    def __init__(self, sequence: int, matrix: Matrix) -> None:
        self.sequence = sequence
        self.matrix = matrix


class SqliteVectorIndex:
    def __init__(self, database: Database, visibility: Visibility, changes: Changes, identities: Identities) -> None:
        self._database = database
        self._visibility = visibility
        self._changes = changes
        self._identities = identities
        self._sql = queries("vectors")
        self._loaded: dict[int, _Loaded] = {}
        self._lock = threading.Lock()

    def models(self) -> tuple[Model, ...]:
        with self._database.errors():
            rows = self._database.read().execute(self._sql["models"]).fetchall()
        return tuple(Model(row[0], row[1], row[2], row[3], bool(row[4])) for row in rows)

    def adopt(self, identity: str, spec: str, dimension: int) -> Model:
        """The model of that identity, made known if it is new. The first serves at once; a later one fills up first."""
        with self._database.write() as connection:
            known = {model.identity: model for model in self.models()}
            if identity in known:
                return self._known(connection_spec=spec, dimension=dimension, model=known[identity])
            values = {"identity": identity, "spec": spec, "dimension": dimension, "serving": int(not known)}
            number = int(connection.execute(self._sql["insert_model"], values).lastrowid or 0)
            connection.execute(queries("jobs")["enqueue_model"], {"model": number})
        return Model(number, identity, spec, dimension, not known)

    def serve(self, model: Model) -> None:
        """Lets a filled model answer and drops the vectors of the others."""
        with self._database.write() as connection:
            connection.execute(self._sql["serve_model"], {"model": model.model})
            for other in self.models():
                if other.model != model.model:
                    connection.execute(self._sql["delete_model"], {"model": other.model})

    def remove(self, model: Model) -> None:
        """Drops a model with its vectors and jobs."""
        with self._database.write() as connection:
            connection.execute(self._sql["delete_model"], {"model": model.model})

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

    def spans(self, model: Model, ids: Sequence[str]) -> dict[str, tuple[Passage, ...]]:
        with self._database.errors():
            parameters = {"model": model.model, "ids": as_json(ids)}
            rows = self._database.read().execute(self._sql["spans"], parameters).fetchall()
        spans: dict[str, list[Passage]] = {}
        for row in rows:
            spans.setdefault(row[0], []).append(Passage(row[1], row[2], row[3]))
        return {id: tuple(passages) for id, passages in spans.items()}

    def _known(self, connection_spec: str, dimension: int, model: Model) -> Model:
        if model.dimension != dimension:
            raise EmbedderError(
                f"{model.identity} now makes vectors of {dimension} dimensions, and the stored ones have "
                f"{model.dimension}. Name the model that made them, or run `trivet reindex --vectors`."
            )
        if model.spec != connection_spec:
            values = {"spec": connection_spec, "model": model.model}
            self._database.read().execute(self._sql["update_spec"], values)
        return model

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
