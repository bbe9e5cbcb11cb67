"""Embedding models, their passages, and the vectors of one model cached in memory."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.errors import EmbedderError
from trivet.memory_fields import as_json
from trivet.store.records import Model, Passage, PassageWithTerms
from trivet.store.relational.changes import MODELS_KEY, Changes
from trivet.store.relational.database import Connection, Database, StorePart, WriteTransaction
from trivet.store.relational.ids import Ids
from trivet.store.relational.index.index_files import MappedIndex
from trivet.store.relational.index.vector_matrix import (
    Matrix,
    VectorDtype,
    bytes_per_passage,
    reshape_passages,
)
from trivet.types import Candidate, Filter

if TYPE_CHECKING:
    import numpy as np


# A larger share of removed rows makes a reload compact the matrix.
REMOVED_SHARE = 0.25


class PassageRows(msgspec.Struct, frozen=True):
    keys: list[int]
    ordinals: list[int]
    vectors: NDArray[np.float16]


GetIndexFile = Callable[[], MappedIndex | None]
# Reads a model's passages, of these memories or of all.
ReadPassages = Callable[[Model, Collection[int] | None], Iterator[PassageRows]]


class _Loaded(msgspec.Struct):
    sequence: int
    matrix: Matrix


Evict = Callable[[], None]


class MemoryLimit:
    """A limit on all vectors of a process; the least recently used ones go."""

    def __init__(self, bytes: int) -> None:
        self.bytes = bytes
        self._lock = threading.Lock()
        self._taken: OrderedDict[Hashable, tuple[int, Evict]] = OrderedDict()

    def take(self, name: Hashable, bytes: int, forget: Evict) -> None:
        with self._lock:
            self._taken[name] = (bytes, forget)
            self._taken.move_to_end(name)
            going = []
            while (
                sum(held for held, _ in self._taken.values()) > self.bytes and len(self._taken) > 1
            ):
                going.append(self._taken.popitem(last=False)[1][1])
        for make_room in going:
            make_room()

    def release(self, name: Hashable) -> None:
        with self._lock:
            self._taken.pop(name, None)


class VectorCache:
    def __init__(
        self,
        changes: Changes,
        ids: Ids,
        read: ReadPassages,
        limit: MemoryLimit | None = None,
        kind: VectorDtype = np.float32,
        index_file: GetIndexFile = lambda: None,
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
        self,
        model: Model,
        vector: NDArray[np.float32],
        mask: NDArray[np.bool_],
        depth: int,
        chance: float = 0.0,
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
        matrix = self.matrix(model)
        return {id for id, key in self._ids.keys(ids).items() if matrix.holds(key)}

    def bytes(self, model: Model) -> int:
        """Return the bytes the vectors take unmapped; 0 before first use."""
        loaded = self._loaded.get(model.model)
        if loaded is None:
            return 0
        return (
            loaded.matrix.size * bytes_per_passage(model.dimension)
            if loaded.matrix.is_mapped
            else loaded.matrix.bytes
        )

    def forget(self) -> None:
        self._loaded = {}
        if self._limit:
            self._limit.release(id(self))

    def matrix(self, model: Model) -> Matrix:
        with self._lock:
            loaded = self._loaded.get(model.model)
            changed = self._changes.since(loaded.sequence) if loaded else None
            if (
                loaded is None
                or changed is None
                or loaded.matrix.removed > REMOVED_SHARE * loaded.matrix.size + 1000
            ):
                loaded = self._load(model)
                self._loaded = {model.model: loaded}
            elif changed:
                self._catch_up(model, loaded.matrix, {key for _, key in changed})
                loaded.sequence = changed[-1][0]
        if self._limit:
            self._limit.take(
                id(self), 0 if loaded.matrix.is_mapped else loaded.matrix.bytes, self.forget
            )
        return loaded.matrix

    def _load(self, model: Model) -> _Loaded:
        sequence = self._changes.last()
        return self._from_file(model) or _Loaded(
            sequence, matrix_of(model, self._read(model, None), self._kind)
        )

    def _from_file(self, model: Model) -> _Loaded | None:
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


def matrix_of(
    model: Model, passages: Iterable[PassageRows], kind: VectorDtype = np.float32
) -> Matrix:
    matrix = Matrix(model.dimension, kind)
    _append(matrix, passages)
    return matrix


def _append(matrix: Matrix, batches: Iterable[PassageRows]) -> None:
    for rows in batches:
        vectors = reshape_passages(rows.vectors, len(rows.keys), matrix.dimension)
        if rows.keys:
            matrix.add(rows.keys, rows.ordinals, vectors)


def check_dimension(model: Model, vector: NDArray[np.float32]) -> None:
    if vector.shape != (model.dimension,):
        raise EmbedderError(
            f"The query's vector has {vector.shape[-1]} dimensions, but the stored vectors of "
            f"{model.identity} have {model.dimension}. The embedder has changed; "
            "run `trivet reindex --vectors`."
        )


class VectorIndex(StorePart, ABC):
    """The models and passages of a store; each database implements the search."""

    file = "vectors"
    trouble: str | None = None  # why the database could not build its vector index

    def __init__(self, database: Database, changes: Changes) -> None:
        super().__init__(database)
        self._changes = changes
        self._models: tuple[int, tuple[Model, ...]] | None = None  # (change, models)

    @abstractmethod
    def search(
        self,
        model: Model,
        vector: NDArray[np.float32],
        filter: Filter,
        depth: int,
        chance: float = 0.0,
    ) -> list[Candidate]:
        """Return the memories with the nearest passages, best first.

        With `chance`, correct for the number of passages.
        """

    @abstractmethod
    def _read(self, model: Model, keys: Collection[int] | None) -> Iterator[PassageRows]: ...

    def of_memory(self, model: Model, key: int) -> NDArray[np.float32] | None:
        rows = next(iter(self._read(model, [key])), None)
        if rows is None or not rows.keys:
            return None
        first: NDArray[np.float32] = rows.vectors.reshape(len(rows.keys), -1)[
            rows.ordinals.index(0)
        ].astype("f4")
        return first

    def count(self, model: Model) -> int:
        return int(self._row("count_passages", model=model.model)[0])

    def is_in_memory(self, model: Model) -> bool:
        """Return whether this process holds all vectors."""
        return True

    def all_passages(self, model: Model) -> Iterator[PassageRows]:
        """Yield all passages in key and ordinal order."""
        return self._read(model, None)

    def of_memories(self, model: Model, keys: Collection[int]) -> Iterator[PassageRows]:
        return self._read(model, keys)

    def prepare(self) -> None:
        """Build what searches among many vectors need, if the database does not."""

    def close(self) -> None:
        """Stop background work."""

    def models(self) -> tuple[Model, ...]:
        """Return the same tuple until a model changes: a recall asks a dozen times."""
        return self._changes.kept("models", self._models_now)

    def _models_now(self) -> tuple[Model, ...]:
        known = self._models
        last = self._changes.last()
        changed = self._changes.since(known[0]) if known else None
        if known is None or changed is None or any(key == MODELS_KEY for _, key in changed):
            with self._database.errors():
                known = (last, self.stored(self._database.read()))
        self._models = (last, known[1])
        return known[1]

    def adopt(self, identity: str, spec: str, dimension: int) -> Model:
        """Return or add the model; only the first one serves at once."""
        with self._database.write() as connection:
            known = {model.identity: model for model in self.stored(connection)}
            if identity in known:
                return self._known(connection, spec, dimension, known[identity])
            values = {
                "identity": identity,
                "spec": spec,
                "dimension": dimension,
                "serving": not known,
            }
            number = int(connection.execute(self._sql["insert_model"], values).fetchone()[0])
            connection.execute(connection.sql("jobs")["enqueue_model"], {"model": number})
            connection.note_change(MODELS_KEY)
        return Model(number, identity, spec, dimension, not known)

    def serve(self, model: Model) -> None:
        """Make a filled model serve and drop the others."""
        with self._database.write() as connection:
            connection.execute(self._sql["serve_model"], {"model": model.model})
            for other in self.stored(connection):
                if other.model != model.model:
                    connection.execute(self._sql["delete_model"], {"model": other.model})
            connection.note_change(MODELS_KEY)

    def remove(self, model: Model) -> None:
        with self._database.write() as connection:
            connection.execute(self._sql["delete_model"], {"model": model.model})
            connection.note_change(MODELS_KEY)

    def is_unused(self, model: Model) -> bool:
        """Return whether removing it would lose nothing."""
        return bool(self._row("is_unused", model=model.model)[0])

    def spans(self, model: Model, ids: Sequence[str]) -> dict[str, tuple[Passage, ...]]:
        spans: dict[str, list[Passage]] = {}
        for row in self._rows("spans", model=model.model, ids=as_json(ids)):
            spans.setdefault(row[0], []).append(Passage(row[1], row[2], row[3]))
        return {id: tuple(passages) for id, passages in spans.items()}

    def described(
        self, model: Model, ids: Sequence[str]
    ) -> dict[str, tuple[PassageWithTerms, ...]]:
        found: dict[str, list[PassageWithTerms]] = {}
        for row in self._rows("described", model=model.model, ids=as_json(ids)):
            found.setdefault(row[0], []).append(PassageWithTerms(row[1], row[2], row[3], row[4]))
        return {id: tuple(passages) for id, passages in found.items()}

    def spans_at(self, model: Model, ordinals: Mapping[str, int]) -> dict[str, Passage]:
        places = {"ids": as_json(ordinals), "ordinals": as_json(ordinals.values())}
        rows = self._rows("spans_at", model=model.model, **places)
        return {row[0]: Passage(row[1], row[2], row[3]) for row in rows}

    def embedded(self, model: Model, ids: Sequence[str]) -> set[str]:
        return set(self.spans_at(model, dict.fromkeys(ids, 0)))

    def stored(self, connection: Connection) -> tuple[Model, ...]:
        rows = connection.execute(self._sql["models"]).fetchall()
        return tuple(Model(row[0], row[1], row[2], row[3], bool(row[4])) for row in rows)

    def _known(
        self, connection: WriteTransaction, spec: str, dimension: int, model: Model
    ) -> Model:
        if model.dimension != dimension:
            raise EmbedderError(
                f"{model.identity} now returns {dimension} dimensions, but the stored vectors "
                f"have {model.dimension}. Set the model that made them, "
                "or run `trivet reindex --vectors`."
            )
        if model.spec != spec:
            connection.execute(self._sql["update_spec"], {"spec": spec, "model": model.model})
            connection.note_change(MODELS_KEY)
        return model
