"""BM25 over the posting lists, with the statistics of what the caller may see and nothing else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from trivet.memory_fields import as_json
from trivet.store.records import Bm25
from trivet.store.relational.changes import Changes
from trivet.store.relational.database import Part, StoreDatabase
from trivet.store.relational.ids import Ids
from trivet.store.relational.posting_cache import PostingCache
from trivet.store.relational.visibility import Visibility
from trivet.store.scoring import prefer_all_words, score, seen, together
from trivet.types import Candidate, Filter

# One changed word of a short text changes most of its few pairs.
SHORT_FINGERPRINT = 8
NO_OTHERS: Mapping[str, Sequence[str]] = {}


class LexicalIndex(Part):
    file = "lexical"

    def __init__(self, database: StoreDatabase, visibility: Visibility, changes: Changes, ids: Ids) -> None:
        super().__init__(database)
        self._visibility = visibility
        self._postings = PostingCache(database, changes)
        self._ids = ids

    def search(
        self,
        terms: Sequence[str],
        required: Sequence[str],
        enough: int,
        filter: Filter,
        bm25: Bm25,
        depth: int,
        others: Mapping[str, Sequence[str]] = NO_OTHERS,
    ) -> list[Candidate]:
        """The best `depth` memories; those that hold all `required` terms alone, if there are `enough` of them.

        A memory that holds one of the `others` of a term holds the term.
        """
        visible = self._visibility.of(filter)
        wanted = dict.fromkeys((*terms, *(other for some in others.values() for other in some)))
        kept = self._postings.of(wanted, bm25.field_weights)
        shown = {term: seen(kept[term], visible) for term in terms}
        for term, some in others.items():
            shown[term] = together([shown[term], *(seen(kept[other], visible) for other in some)])
        lists = {term: postings for term, postings in shown.items() if len(postings.keys)}
        if not lists:
            return []
        scores = score(lists, visible, bm25)
        if required and all(term in lists for term in required):
            scores = prefer_all_words(scores, [lists[term] for term in required], enough)
        return self._best(scores, depth)

    def similar(self, id: str, fingerprint: Sequence[int], limit: int, viewer: str | None = None) -> list[str]:
        """Ids of memories other than `id` that share part of the fingerprint; the caller compares them properly."""
        shared = 1 if len(fingerprint) < SHORT_FINGERPRINT else 2
        parameters = {"id": id, "hashes": as_json(fingerprint), "shared": shared, "limit": limit, "viewer": viewer}
        return [row[0] for row in self._rows("similar", **parameters)]

    def holders(self, terms: Sequence[str], filter: Filter, bm25: Bm25) -> dict[str, int]:
        """How many visible memories hold each term. With the weights of the search its posting lists are at hand."""
        visible = self._visibility.of(filter)
        kept = self._postings.of(terms, bm25.field_weights)
        return {term: len(seen(postings, visible).keys) for term, postings in kept.items()}

    def _best(self, scores: NDArray[np.float64], depth: int) -> list[Candidate]:
        found = np.flatnonzero(scores)
        if len(found) > depth:
            cut = np.partition(scores[found], len(found) - depth)[len(found) - depth]
            found = found[scores[found] >= cut]  # everything tied at the cut stays until ids decide
        ids = self._ids.of(found.tolist())
        ranked = [
            Candidate(id=ids[key], score=score)
            for key, score in zip(found.tolist(), scores[found].tolist(), strict=True)
            if key in ids
        ]
        ranked.sort(key=lambda candidate: (-candidate.score, candidate.id))
        return ranked[:depth]
