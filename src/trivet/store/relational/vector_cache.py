"""The vectors of a store in memory: a model's are read on first use, kept fresh, and dropped when memory is short."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.errors import EmbedderError
from trivet.store.records import Model
from trivet.store.relational.changes import Changes
from trivet.store.relational.ids import Ids
from trivet.store.relational.mapped_index import MappedIndex
from trivet.store.relational.matrix import Kind, Matrix, bytes_a_passage, passages_of
from trivet.types import Candidate

# A matrix with more removed rows than this share of it is loaded afresh, which packs it.
REMOVED_SHARE = 0.25


class Rows(msgspec.Struct, frozen=True):
    """Passages as read: parallel arrays, the vectors a row each."""

    keys: list[int]
    ordinals: list[int]
    vectors: NDArray[np.float16]


# The index file beside the store, where there is one.
IndexFile = Callable[[], MappedIndex | None]
# The passages of a model, all of them or those of some memories, in portions.
Read = Callable[[Model, Collection[int] | None], Iterator[Rows]]


class _Loaded(msgspec.Struct):
    sequence: int
    matrix: Matrix


Forget = Callable[[], None]


class MemoryLimit:
    """How much memory the vectors of all stores of a process may take: those not used longest make room."""

    def __init__(self, bytes: int) -> None:
        self.bytes = bytes
        self._lock = threading.Lock()
        self._taken: OrderedDict[Hashable, tuple[int, Forget]] = OrderedDict()

    def take(self, name: Hashable, bytes: int, forget: Forget) -> None:
        """Notes that `name` now takes so many bytes. Others forget theirs until all fit."""
        with self._lock:
            self._taken[name] = (bytes, forget)
            self._taken.move_to_end(name)
            going = []
            while sum(held for held, _ in self._taken.values()) > self.bytes and len(self._taken) > 1:
                going.append(self._taken.popitem(last=False)[1][1])
        for make_room in going:
            make_room()

    def give_back(self, name: Hashable) -> None:
        with self._lock:
            self._taken.pop(name, None)


class VectorCache:
    def __init__(
        self,
        changes: Changes,
        ids: Ids,
        read: Read,
        limit: MemoryLimit | None = None,
        kind: Kind = np.float32,
        index_file: IndexFile = lambda: None,
    ) -> None:
        self._index_file = index_file
        self._changes = changes
        self._ids = ids
        self._read = read
        self._limit = limit
        self._kind = kind
        self._loaded: dict[int, _Loaded] = {}
        self._lock = threading.Lock()

    def search(
        self, model: Model, vector: NDArray[np.float32], mask: NDArray[np.bool_], depth: int, chance: float = 0.0
    ) -> list[Candidate]:
        found = self.matrix(model).search(vector.astype(np.float32), mask, depth, chance)
        ids = self._ids.of(found.keys.tolist())
        ranked = [
            Candidate(id=ids[key], score=max(-1.0, min(1.0, score)), passage=ordinal)
            for key, ordinal, score in zip(
                found.keys.tolist(), found.ordinals.tolist(), found.scores.tolist(), strict=True
            )
            if key in ids
        ]
        ranked.sort(key=lambda candidate: (-candidate.score, candidate.id))
        return ranked[:depth]

    def embedded(self, model: Model, ids: Sequence[str]) -> set[str]:
        """Those of these memories that the model has made vectors of."""
        matrix = self.matrix(model)
        return {id for id, key in self._ids.keys(ids).items() if matrix.holds(key)}

    def bytes(self, model: Model) -> int:
        """How many they take, or would take if they were not mapped. None are held before they are first asked for."""
        loaded = self._loaded.get(model.model)
        if loaded is None:
            return 0
        return loaded.matrix.size * bytes_a_passage(model.dimension) if loaded.matrix.is_mapped else loaded.matrix.bytes

    def forget(self) -> None:
        """What was read. A search under way keeps what it has."""
        self._loaded = {}
        if self._limit:
            self._limit.give_back(id(self))

    def matrix(self, model: Model) -> Matrix:
        """The model's vectors, up to date."""
        with self._lock:
            loaded = self._loaded.get(model.model)
            changed = self._changes.since(loaded.sequence) if loaded else None
            if loaded is None or changed is None or loaded.matrix.removed > REMOVED_SHARE * loaded.matrix.size + 1000:
                loaded = self._load(model)
                self._loaded = {model.model: loaded}
            elif changed:
                self._catch_up(model, loaded.matrix, {key for _, key in changed})
                loaded.sequence = changed[-1][0]
        if self._limit:
            self._limit.take(id(self), 0 if loaded.matrix.is_mapped else loaded.matrix.bytes, self.forget)
        return loaded.matrix

    def _load(self, model: Model) -> _Loaded:
        sequence = self._changes.last()
        return self._from_file(model) or _Loaded(sequence, matrix_of(model, self._read(model, None), self._kind))

    def _from_file(self, model: Model) -> _Loaded | None:
        """As of when the file was made, with what changed since; None without a file that reaches near enough."""
        index = self._index_file()
        changed = index and self._changes.since(index.sequence)
        matrix = None if index is None or changed is None else index.matrix(model)
        if index is None or changed is None or matrix is None:
            return None
        if changed:
            self._catch_up(model, matrix, {key for _, key in changed})
        return _Loaded(changed[-1][0] if changed else index.sequence, matrix)

    def _catch_up(self, model: Model, matrix: Matrix, keys: set[int]) -> None:
        rows = list(self._read(model, keys))
        for key in keys:
            matrix.remove(key)
        _append(matrix, rows)


def matrix_of(model: Model, passages: Iterable[Rows], kind: Kind = np.float32) -> Matrix:
    matrix = Matrix(model.dimension, kind)
    _append(matrix, passages)
    return matrix


def _append(matrix: Matrix, portions: Iterable[Rows]) -> None:
    for rows in portions:
        vectors = passages_of(rows.vectors, len(rows.keys), matrix.dimension)
        if rows.keys:
            matrix.add(rows.keys, rows.ordinals, vectors)


def check_dimension(model: Model, vector: NDArray[np.float32]) -> None:
    if vector.shape != (model.dimension,):
        raise EmbedderError(
            f"The query's vector has {vector.shape[-1]} dimensions and the stored vectors of {model.identity} have "
            f"{model.dimension}. The embedder has changed; run `trivet reindex --vectors`."
        )
