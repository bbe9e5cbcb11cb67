"""BM25 over the posting lists, with the statistics of what the caller may see and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from trivet.store.base import Bm25
from trivet.store.sqlite.database import Database
from trivet.store.sqlite.identity import Identities
from trivet.store.sqlite.postings import PostingCache, Postings
from trivet.store.sqlite.queries import queries
from trivet.store.sqlite.rows import as_json
from trivet.store.sqlite.visible import Visibility, Visible
from trivet.types import Candidate, Filter

# A word held by more than this share of many memories does not bring a memory in by itself; it still adds to its score.
COMMON_SHARE = 0.05
COMMON_AT_LEAST = 2_000
# One changed word of a short text changes most of its few pairs.
SHORT_FINGERPRINT = 8
# A pasted page has hundreds of words; the rarest decide.
MOST_TERMS = 64


class SqliteLexicalIndex:
    def __init__(
        self, database: Database, visibility: Visibility, postings: PostingCache, identities: Identities
    ) -> None:
        self._database = database
        self._visibility = visibility
        self._postings = postings
        self._identities = identities

    def search(
        self, terms: Sequence[str], required: Sequence[str], enough: int, filter: Filter, bm25: Bm25, depth: int
    ) -> list[Candidate]:
        """The best `depth` memories; those that hold all `required` terms alone, if there are `enough` of them."""
        visible = self._visibility.of(filter)
        kept = self._postings.of(terms, bm25.field_weights)
        shown = {term: _seen(postings, visible) for term, postings in kept.items()}
        lists = {term: postings for term, postings in shown.items() if len(postings.keys)}
        if not lists:
            return []
        scores = _score(lists, visible, bm25)
        if required and all(term in lists for term in required):
            scores = _prefer_all_words(scores, [lists[term] for term in required], enough)
        return self._best(scores, depth)

    def similar(self, id: str, fingerprint: Sequence[int], limit: int) -> list[str]:
        """Ids of memories other than `id` that share part of the fingerprint; the caller compares them properly."""
        shared = 1 if len(fingerprint) < SHORT_FINGERPRINT else 2
        parameters = {"id": id, "hashes": as_json(fingerprint), "shared": shared, "limit": limit}
        with self._database.errors():
            rows = self._database.read().execute(queries("lexical")["similar"], parameters).fetchall()
        return [row[0] for row in rows]

    def holders(self, terms: Sequence[str], filter: Filter, bm25: Bm25) -> dict[str, int]:
        """How many visible memories hold each term. With the weights of the search its posting lists are at hand."""
        visible = self._visibility.of(filter)
        kept = self._postings.of(terms, bm25.field_weights)
        return {term: len(_seen(postings, visible).keys) for term, postings in kept.items()}

    def _best(self, scores: NDArray[np.float64], depth: int) -> list[Candidate]:
        found = np.flatnonzero(scores)
        if len(found) > depth:
            cut = np.partition(scores[found], len(found) - depth)[len(found) - depth]
            found = found[scores[found] >= cut]  # everything tied at the cut stays until ids decide
        ids = self._identities.of(found.tolist())
        ranked = [
            Candidate(id=ids[key], score=score)
            for key, score in zip(found.tolist(), scores[found].tolist(), strict=True)
            if key in ids
        ]
        ranked.sort(key=lambda candidate: (-candidate.score, candidate.id))
        return ranked[:depth]


def _seen(postings: Postings, visible: Visible) -> Postings:
    keys = postings.keys
    if len(keys) and keys[-1] >= len(visible.mask):
        keys = keys[: np.searchsorted(keys, len(visible.mask))]
    shown = visible.mask[keys]
    if shown.all():
        return postings if len(keys) == len(postings.keys) else Postings(keys, postings.frequencies[: len(keys)])
    return Postings(keys[shown], postings.frequencies[: len(keys)][shown])


def _score(lists: dict[str, Postings], visible: Visible, bm25: Bm25) -> NDArray[np.float64]:
    """Scores by key, 0 where nothing matched: the sum of idf * tf (k1 + 1) / (tf + k1 (1 - b + b length / mean))."""
    rarest = sorted(lists.values(), key=lambda postings: len(postings.keys))[:MOST_TERMS]
    common = max(COMMON_AT_LEAST, COMMON_SHARE * visible.count)
    informative = [postings for postings in rarest if len(postings.keys) <= common] or rarest[:1]
    scores = np.zeros(len(visible.mask))
    for postings in informative:
        scores[postings.keys] += _weights(postings, visible, bm25)
    for postings in rarest[len(informative) :]:
        candidate = scores[postings.keys] > 0
        kept = Postings(postings.keys[candidate], postings.frequencies[candidate])
        scores[kept.keys] += _weights(kept, visible, bm25, holders=len(postings.keys))
    return scores


def _weights(postings: Postings, visible: Visible, bm25: Bm25, holders: int | None = None) -> NDArray[np.float64]:
    count = len(postings.keys) if holders is None else holders
    idf = np.log1p((visible.count - count + 0.5) / (count + 0.5))
    relative_length = visible.lengths[postings.keys] / max(visible.mean_length, 1e-9)
    frequencies = postings.frequencies
    saturated = frequencies * (bm25.k1 + 1) / (frequencies + bm25.k1 * (1 - bm25.b + bm25.b * relative_length))
    weights: NDArray[np.float64] = idf * saturated
    return weights


def _prefer_all_words(scores: NDArray[np.float64], required: list[Postings], enough: int) -> NDArray[np.float64]:
    held = np.zeros(len(scores), np.int32)
    for postings in required:
        held[postings.keys] += 1
    complete = (held == len(required)) & (scores > 0)
    if int(complete.sum()) < enough:
        return scores
    return np.where(complete, scores, 0.0)
