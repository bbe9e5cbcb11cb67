"""The vectors of a store in memory: each model's are read on first use, kept fresh, and let go when room is short."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.errors import EmbedderError
from trivet.store.base import Model
from trivet.store.relational.changes import Changes
from trivet.store.relational.identity import Identities
from trivet.store.relational.matrix import Kind, Matrix
from trivet.store.relational.room import Room
from trivet.types import Candidate

# A matrix with more removed rows than this share of it is loaded afresh, which packs it.
REMOVED_SHARE = 0.25


class Rows(msgspec.Struct, frozen=True):
    """Passages as read: parallel arrays, the vectors a row each."""

    keys: list[int]
    ordinals: list[int]
    vectors: NDArray[np.float16]


# The passages of a model, all of them or those of some memories, in portions.
Read = Callable[[Model, Collection[int] | None], Iterator[Rows]]


class _Held(msgspec.Struct):
    sequence: int
    matrix: Matrix


class HeldVectors:
    def __init__(
        self, changes: Changes, identities: Identities, read: Read, room: Room | None = None, kind: Kind = np.float32
    ) -> None:
        self._changes = changes
        self._identities = identities
        self._read = read
        self._room = room
        self._kind = kind
        self._held: dict[int, _Held] = {}
        self._lock = threading.Lock()

    def search(self, model: Model, vector: NDArray[np.float32], mask: NDArray[np.bool_], depth: int) -> list[Candidate]:
        found = self._fresh(model).search(vector.astype(np.float32), mask, depth)
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

    def bytes(self, model: Model) -> int:
        """How many they take. None are held before they are first asked for."""
        held = self._held.get(model.model)
        return held.matrix.bytes if held else 0

    def forget(self) -> None:
        """What was read. A search under way keeps what it has."""
        self._held = {}
        if self._room:
            self._room.give_back(id(self))

    def _fresh(self, model: Model) -> Matrix:
        with self._lock:
            held = self._held.get(model.model)
            changed = self._changes.since(held.sequence) if held else None
            if held is None or changed is None or held.matrix.removed > REMOVED_SHARE * held.matrix.size + 1000:
                held = self._load(model)
                self._held = {model.model: held}
            elif changed:
                self._catch_up(model, held.matrix, {key for _, key in changed})
                held.sequence = changed[-1][0]
        if self._room:
            self._room.take(id(self), held.matrix.bytes, self.forget)
        return held.matrix

    def _load(self, model: Model) -> _Held:
        held = _Held(self._changes.last(), Matrix(model.dimension, self._kind))
        self._append(held.matrix, self._read(model, None))
        return held

    def _catch_up(self, model: Model, matrix: Matrix, keys: set[int]) -> None:
        rows = list(self._read(model, keys))
        for key in keys:
            matrix.remove(key)
        self._append(matrix, rows)

    def _append(self, matrix: Matrix, portions: Iterator[Rows] | list[Rows]) -> None:
        for rows in portions:
            if rows.vectors.size != len(rows.keys) * matrix.dimension:
                raise EmbedderError(
                    f"Stored vectors do not have {matrix.dimension} dimensions. Run `trivet reindex --vectors`."
                )
            if rows.keys:
                matrix.add(rows.keys, rows.ordinals, rows.vectors.reshape(-1, matrix.dimension))


def check_dimension(model: Model, vector: NDArray[np.float32]) -> None:
    if vector.shape != (model.dimension,):
        raise EmbedderError(
            f"The query's vector has {vector.shape[-1]} dimensions and the stored vectors of {model.identity} have "
            f"{model.dimension}. The embedder has changed; run `trivet reindex --vectors`."
        )
