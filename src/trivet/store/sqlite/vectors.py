"""Vectors in the database, searched in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trivet.memory_fields import as_json
from trivet.store.records import Model
from trivet.store.relational.changes import Changes
from trivet.store.relational.ids import Ids
from trivet.store.relational.vector_cache import Rows, VectorCache, check_dimension
from trivet.store.relational.vector_index import VectorIndex
from trivet.store.relational.visibility import Visibility
from trivet.types import Candidate, Filter

if TYPE_CHECKING:
    from trivet.store.sqlite.database import Database

# Passages read at a time: some megabytes.
AT_ONCE = 10_000


class SqliteVectorIndex(VectorIndex):
    def __init__(self, database: Database, visibility: Visibility, changes: Changes, ids: Ids) -> None:
        super().__init__(database, changes)
        self._visibility = visibility
        self._cache = VectorCache(changes, ids, self._read, index_file=database.mapped_index)

    def search(
        self, model: Model, vector: NDArray[np.float32], filter: Filter, depth: int, chance: float = 0.0
    ) -> list[Candidate]:
        check_dimension(model, vector)
        return self._cache.search(model, vector, self._visibility.of(filter).mask, depth, chance)

    def embedded(self, model: Model, ids: Sequence[str]) -> set[str]:
        """Without a look into the database: a search has read them all."""
        return self._cache.embedded(model, ids)

    def _read(self, model: Model, keys: Collection[int] | None) -> Iterator[Rows]:
        name, listed = "all_vectors" if keys is None else "vectors_of", as_json(keys or ())
        with self._database.errors():
            every = iter(self._database.read().execute(self._sql[name], {"keys": listed, "model": model.model}))
            while rows := list(islice(every, AT_ONCE)):
                places, ordinals, blobs = zip(*rows, strict=True)
                yield Rows(list(places), list(ordinals), np.frombuffer(b"".join(blobs), np.float16))
