"""The embedding models a store knows, which passages each has made, and the search among their vectors."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from trivet.errors import EmbedderError
from trivet.memory_fields import as_json
from trivet.store.records import DescribedPassage, Model, Passage
from trivet.store.relational.changes import MODELS, Changes
from trivet.store.relational.database import Connection, Database, Part, WriteTransaction
from trivet.types import Candidate, Filter

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trivet.store.relational.vector_cache import Rows


class VectorIndex(Part, ABC):
    """What all stores share. Each database searches its vectors its own way."""

    file = "vectors"
    trouble: str | None = None  # why an index over many vectors could not be built

    def __init__(self, database: Database, changes: Changes) -> None:
        super().__init__(database)
        self._changes = changes
        self._models: tuple[int, tuple[Model, ...]] | None = None  # as of which change

    @abstractmethod
    def search(
        self, model: Model, vector: NDArray[np.float32], filter: Filter, depth: int, chance: float = 0.0
    ) -> list[Candidate]:
        """The memories whose best passage is nearest to the vector, best first.

        With `chance` the best of many passages loses what it has by chance.
        """

    @abstractmethod
    def _read(self, model: Model, keys: Collection[int] | None) -> Iterator[Rows]:
        """The passages of some memories, or of all, in portions."""

    def of_memory(self, model: Model, key: int) -> NDArray[np.float32] | None:
        """The vector of a memory's first passage, if the model has made one."""
        rows = next(iter(self._read(model, [key])), None)
        if rows is None or not rows.keys:
            return None
        first: NDArray[np.float32] = rows.vectors.reshape(len(rows.keys), -1)[rows.ordinals.index(0)].astype("f4")
        return first

    def count(self, model: Model) -> int:
        """How many passages a model has made."""
        return int(self._row("count_passages", model=model.model)[0])

    def is_searched_here(self, model: Model) -> bool:
        """Whether this process has all vectors of the model, and not the database alone."""
        return True

    def all_passages(self, model: Model) -> Iterator[Rows]:
        """Every passage of a model, in portions, in the order of keys and ordinals."""
        return self._read(model, None)

    def of_memories(self, model: Model, keys: Collection[int]) -> Iterator[Rows]:
        """The passages of some memories, in portions."""
        return self._read(model, keys)

    def prepare(self) -> None:
        """Makes what searches among many vectors need, where a store does not do so by itself."""

    def close(self) -> None:
        """Ends what works beside the caller."""

    def models(self) -> tuple[Model, ...]:
        """The same tuple until one of them changes. A recall asks for it a dozen times."""
        return self._changes.kept("models", self._models_now)

    def _models_now(self) -> tuple[Model, ...]:
        known = self._models
        last = self._changes.last()
        changed = self._changes.since(known[0]) if known else None
        if known is None or changed is None or any(key == MODELS for _, key in changed):
            with self._database.errors():
                known = (last, self.stored(self._database.read()))
        self._models = (last, known[1])
        return known[1]

    def adopt(self, identity: str, spec: str, dimension: int) -> Model:
        """The model of that identity, made known if it is new. The first serves at once; a later one fills up first."""
        with self._database.write() as connection:
            known = {model.identity: model for model in self.stored(connection)}
            if identity in known:
                return self._known(connection, spec, dimension, known[identity])
            values = {"identity": identity, "spec": spec, "dimension": dimension, "serving": not known}
            number = int(connection.execute(self._sql["insert_model"], values).fetchone()[0])
            connection.execute(connection.sql("jobs")["enqueue_model"], {"model": number})
            connection.note_change(MODELS)
        return Model(number, identity, spec, dimension, not known)

    def serve(self, model: Model) -> None:
        """Lets a filled model answer and drops the vectors of the others."""
        with self._database.write() as connection:
            connection.execute(self._sql["serve_model"], {"model": model.model})
            for other in self.stored(connection):
                if other.model != model.model:
                    connection.execute(self._sql["delete_model"], {"model": other.model})
            connection.note_change(MODELS)

    def remove(self, model: Model) -> None:
        """Drops a model with its vectors and jobs."""
        with self._database.write() as connection:
            connection.execute(self._sql["delete_model"], {"model": model.model})
            connection.note_change(MODELS)

    def is_unused(self, model: Model) -> bool:
        """Whether it has neither vectors nor memories that wait for them: then nothing is lost with it."""
        return bool(self._row("is_unused", model=model.model)[0])

    def spans(self, model: Model, ids: Sequence[str]) -> dict[str, tuple[Passage, ...]]:
        """All passages of these memories."""
        spans: dict[str, list[Passage]] = {}
        for row in self._rows("spans", model=model.model, ids=as_json(ids)):
            spans.setdefault(row[0], []).append(Passage(row[1], row[2], row[3]))
        return {id: tuple(passages) for id, passages in spans.items()}

    def described(self, model: Model, ids: Sequence[str]) -> dict[str, tuple[DescribedPassage, ...]]:
        """All passages of these memories with their terms."""
        found: dict[str, list[DescribedPassage]] = {}
        for row in self._rows("described", model=model.model, ids=as_json(ids)):
            found.setdefault(row[0], []).append(DescribedPassage(row[1], row[2], row[3], row[4]))
        return {id: tuple(passages) for id, passages in found.items()}

    def spans_at(self, model: Model, ordinals: Mapping[str, int]) -> dict[str, Passage]:
        """One passage of each of these memories, by their ids."""
        places = {"ids": as_json(ordinals), "ordinals": as_json(ordinals.values())}
        rows = self._rows("spans_at", model=model.model, **places)
        return {row[0]: Passage(row[1], row[2], row[3]) for row in rows}

    def embedded(self, model: Model, ids: Sequence[str]) -> set[str]:
        """Those of these memories that the model has made vectors of."""
        return set(self.spans_at(model, dict.fromkeys(ids, 0)))

    def stored(self, connection: Connection) -> tuple[Model, ...]:
        rows = connection.execute(self._sql["models"]).fetchall()
        return tuple(Model(row[0], row[1], row[2], row[3], bool(row[4])) for row in rows)

    def _known(self, connection: WriteTransaction, spec: str, dimension: int, model: Model) -> Model:
        if model.dimension != dimension:
            raise EmbedderError(
                f"{model.identity} now makes vectors of {dimension} dimensions, and the stored ones have "
                f"{model.dimension}. Name the model that made them, or run `trivet reindex --vectors`."
            )
        if model.spec != spec:
            connection.execute(self._sql["update_spec"], {"spec": spec, "model": model.model})
            connection.note_change(MODELS)
        return model
