"""The index file, in the folder `memory.db.index` of a store `memory.db`, and vector search."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from trivet.memory_fields import as_json
from trivet.store.records import Model
from trivet.store.relational.changes import Changes
from trivet.store.relational.ids import Ids
from trivet.store.relational.index.index_files import IndexFiles
from trivet.store.relational.index.vector_index import (
    PassageRows,
    VectorCache,
    VectorIndex,
    check_dimension,
)
from trivet.store.relational.index.visibility import Visibility
from trivet.types import Candidate, Filter

if TYPE_CHECKING:
    from trivet.store.relational.database import StoreDatabase, WriteTransaction


# Name in `meta` of the current file, or of the mark that all must go.
_INDEX = "index"
_DISOWNED = "disowned"


class SqliteIndexFiles(IndexFiles):
    def __init__(self, database: StoreDatabase, store: Path) -> None:
        super().__init__(database)
        self._sqlite = database
        self._folder = store.with_name(f"{store.name}.index")

    @property
    def folder(self) -> Path:
        return self._folder

    def disown(self, connection: WriteTransaction) -> None:
        connection.execute(
            connection.sql("maintenance")["set_meta"], {"name": _INDEX, "value": _DISOWNED}
        )

    def disowned(self) -> bool:
        return self._noted() == _DISOWNED

    def remove_disowned(self) -> bool:
        if not self.disowned():
            return True
        if not self._removed_all():
            return False
        sql = self._sqlite.sql("maintenance")["drop_meta"]
        self._sqlite.read().execute(sql, {"name": _INDEX, "value": _DISOWNED})
        return True

    def _named(self) -> str | None:
        noted = self._noted()
        return None if noted == _DISOWNED else noted

    def _moment(self) -> str | None:
        return self._noted()

    def _adopted(self, named: str, before: object) -> bool:
        with self._sqlite.write() as connection:
            if self._noted() != before:
                return False
            connection.execute(
                connection.sql("maintenance")["set_meta"], {"name": _INDEX, "value": named}
            )
            return True

    def _noted(self) -> str | None:
        with self._sqlite.errors():
            sql = self._sqlite.sql("maintenance")["get_meta"]
            row = self._sqlite.read().execute(sql, {"name": _INDEX}).fetchone()
        return None if row is None else str(row[0])


# Bounds a batch to a few megabytes.
PASSAGES_BATCH = 10_000


class SqliteVectorIndex(VectorIndex):
    def __init__(
        self, database: StoreDatabase, visibility: Visibility, changes: Changes, ids: Ids
    ) -> None:
        super().__init__(database, changes)
        self._visibility = visibility
        self._cache = VectorCache(changes, ids, self._read, index_file=database.mapped_index)

    def search(
        self,
        model: Model,
        vector: NDArray[np.float32],
        filter: Filter,
        depth: int,
        chance: float = 0.0,
    ) -> list[Candidate]:
        check_dimension(model, vector)
        return self._cache.search(model, vector, self._visibility.of(filter).mask, depth, chance)

    def embedded(self, model: Model, ids: Sequence[str]) -> set[str]:
        return self._cache.embedded(model, ids)

    def _read(self, model: Model, keys: Collection[int] | None) -> Iterator[PassageRows]:
        name, listed = "all_vectors" if keys is None else "vectors_of", as_json(keys or ())
        with self._database.errors():
            every = iter(
                self._database.read().execute(
                    self._sql[name], {"keys": listed, "model": model.model}
                )
            )
            while rows := list(islice(every, PASSAGES_BATCH)):
                places, ordinals, blobs = zip(*rows, strict=True)
                yield PassageRows(
                    list(places), list(ordinals), np.frombuffer(b"".join(blobs), np.float16)
                )
