"""The dense leg: how near the query's vector is to each chunk's. A chunk without known words has none."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trivet.code.index.segment import Segment
from trivet.code.search.view import Scores, View, blocks

NOWHERE = -1.0


def dense(view: View, query: NDArray[np.float32]) -> Scores:
    """Cosines by chunk; -1 where there is no vector."""
    if view.unit_vectors is not None:
        scores: Scores = view.unit_vectors @ query
    else:
        parts = zip(view.segments, view.lengths, strict=True)
        scores = np.concatenate([_cosines(segment, lengths, query) for segment, lengths in parts])
    scores[~view.alive] = NOWHERE
    return scores


def _cosines(segment: Segment, lengths: Scores, query: NDArray[np.float32]) -> Scores:
    if len(segment.vectors) != segment.chunks:
        return np.full(segment.chunks, NOWHERE, np.float32)
    products = [block.astype(np.float32) @ query for block in blocks(segment.vectors)]
    return (np.concatenate(products) / lengths).astype(np.float32) if products else lengths
