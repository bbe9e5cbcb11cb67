"""The dense leg: how near the query's vector is to each chunk's. A chunk without known words has none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trivet.code.index.segment import Segment
from trivet.code.search.view import Scores, View, normalised

# So many chunks at a time are turned into floats, which keeps the working memory small.
BLOCK = 8_192
NOWHERE = -1.0


def dense(view: View, query: NDArray[np.float32]) -> Scores:
    """Cosines by chunk; -1 where there is no vector."""
    if view.unit_vectors is not None:
        scores: Scores = view.unit_vectors @ query
    else:
        scores = np.concatenate([_cosines(segment, query) for segment in view.segments])
    scores[~view.alive] = NOWHERE
    return scores


def _cosines(segment: Segment, query: NDArray[np.float32]) -> Scores:
    if len(segment.vectors) != segment.chunks:
        return np.full(segment.chunks, NOWHERE, np.float32)
    starts = range(0, segment.chunks, BLOCK)
    return np.concatenate([normalised(segment.vectors[start : start + BLOCK]) @ query for start in starts])
