"""BM25 over posting lists, with the statistics of what the caller may see: one formula for every store."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.store.records import Bm25

# A word held by more than this share of many memories does not bring a memory in by itself; it still adds to its score.
COMMON_SHARE = 0.05
COMMON_AT_LEAST = 2_000
# A pasted page has hundreds of words; the rarest decide.
MOST_TERMS = 64


class Postings(msgspec.Struct, frozen=True):
    """Which memories hold a term and how often, weighted by field. Parallel arrays, keys rising."""

    keys: NDArray[np.int64]
    frequencies: NDArray[np.float64]


class Visible(msgspec.Struct, frozen=True):
    """Arrays by key: whether a memory may be seen, how many terms it has, and how important it is."""

    mask: NDArray[np.bool_]
    lengths: NDArray[np.float32]
    importances: NDArray[np.float64]
    count: int
    mean_length: float


def seen(postings: Postings, visible: Visible) -> Postings:
    keys = postings.keys
    if len(keys) and keys[-1] >= len(visible.mask):
        keys = keys[: np.searchsorted(keys, len(visible.mask))]
    shown = visible.mask[keys]
    if shown.all():
        return postings if len(keys) == len(postings.keys) else Postings(keys, postings.frequencies[: len(keys)])
    return Postings(keys[shown], postings.frequencies[: len(keys)][shown])


def together(lists: Sequence[Postings]) -> Postings:
    """One list for terms that are one word. A memory that holds several of them holds it as often as the commonest."""
    keys, places = np.unique(np.concatenate([postings.keys for postings in lists]), return_inverse=True)
    frequencies = np.zeros(len(keys))
    np.maximum.at(frequencies, places, np.concatenate([postings.frequencies for postings in lists]))
    return Postings(keys, frequencies)


def within(postings: Postings, marked: Postings, held: bool) -> Postings:
    """The list for those memories alone that hold the mark, or alone for those that do not."""
    kept = np.isin(postings.keys, marked.keys, assume_unique=True, invert=not held)
    return Postings(postings.keys[kept], postings.frequencies[kept])


def score(lists: dict[str, Postings], visible: Visible, bm25: Bm25) -> NDArray[np.float64]:
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


def prefer_all_words(scores: NDArray[np.float64], required: list[Postings], enough: int) -> NDArray[np.float64]:
    """Those of memories that hold every required term alone, if there are enough of them."""
    rarest, *others = sorted((postings.keys for postings in required), key=len)
    holding = rarest[scores[rarest] > 0]
    for keys in others:
        if len(holding) < enough:
            return scores
        places = np.minimum(np.searchsorted(keys, holding), len(keys) - 1)
        holding = holding[keys[places] == holding]
    if len(holding) < enough:
        return scores
    kept = np.zeros_like(scores)
    kept[holding] = scores[holding]
    return kept
