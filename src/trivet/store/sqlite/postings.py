"""Posting lists out of FTS5.

FTS5 keeps the index on disk and in the transaction of each write. Its own bm25() has fixed constants, clamps the IDF
of common words and scores every match in 20 to 90 ms at 100,000 memories; lists read once are scored in memory.
"""

from __future__ import annotations

import numpy as np

from trivet.store.relational.postings import Weights
from trivet.store.scoring import Postings
from trivet.store.sqlite.database import Database


class FtsPostings:
    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, term: str, weights: Weights) -> Postings:
        """Each row is key * 8 + field: one integer a row is the cheapest thing to carry out of SQLite."""
        with self._database.errors():
            connection = self._database.read()
            rows = connection.execute(connection.sql("lexical")["postings"], {"term": term}).fetchall()
        occurrences = np.fromiter((row[0] for row in rows), np.int64, len(rows))
        keys, positions = np.unique(occurrences >> 3, return_inverse=True)
        frequencies = np.bincount(positions, weights=np.asarray(weights)[occurrences & 7], minlength=len(keys))
        held = frequencies > 0  # a field of weight 0 does not hold the term
        return Postings(keys[held], frequencies[held].astype(np.float64))
