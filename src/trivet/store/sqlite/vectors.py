"""Vectors in the database, searched in memory."""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np
from numpy.typing import NDArray

from trivet.store.base import Model
from trivet.store.relational.changes import Changes
from trivet.store.relational.held_vectors import HeldVectors, Rows, check_dimension
from trivet.store.relational.identity import Identities
from trivet.store.relational.models import Models
from trivet.store.relational.rows import as_json
from trivet.store.relational.visible import Visibility
from trivet.store.sqlite.database import Database
from trivet.types import Candidate, Filter


class SqliteVectorIndex(Models):
    def __init__(self, database: Database, visibility: Visibility, changes: Changes, identities: Identities) -> None:
        super().__init__(database, changes)
        self._visibility = visibility
        self._held = HeldVectors(changes, identities, self._read)

    def search(self, model: Model, vector: NDArray[np.float32], filter: Filter, depth: int) -> list[Candidate]:
        check_dimension(model, vector)
        return self._held.search(model, vector, self._visibility.of(filter).mask, depth)

    def _read(self, model: Model, keys: Collection[int] | None) -> Iterator[Rows]:
        name, parameters = "all_vectors" if keys is None else "vectors_of", {"keys": as_json(keys or ())}
        with self._database.errors():
            rows = self._database.read().execute(self._sql[name], {**parameters, "model": model.model}).fetchall()
        if rows:
            places, ordinals, blobs = zip(*rows, strict=True)
            yield Rows(list(places), list(ordinals), np.frombuffer(b"".join(blobs), np.float16))
