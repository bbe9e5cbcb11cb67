"""Posting lists out of their table."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trivet.store.postgres.database import Database
from trivet.store.relational.postings import Weights
from trivet.store.scoring import Postings

_FIELDS = ("content", "title", "keywords", "tags", "category")


class StoredPostings:
    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, term: str, weights: Weights) -> Postings:
        parameters = {"term": term, **dict(zip(_FIELDS, weights, strict=True))}
        with self._database.errors():
            sql = self._database.sql("lexical")["postings"]
            keys, frequencies = self._database.read().execute(sql, parameters).fetchone() or (None, None)
        return Postings(_unpacked(keys, ">i8").astype(np.int64), _unpacked(frequencies, ">f8").astype(np.float64))


def _unpacked(packed: bytes | None, kind: str) -> NDArray[np.generic]:
    return np.frombuffer(packed or b"", np.dtype(kind))
