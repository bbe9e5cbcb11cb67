"""Chunks that have to do with another: of like meaning, that define names it uses, that use names it defines."""

from __future__ import annotations

import numpy as np

from trivet.code.index.segment import Segment
from trivet.code.index.terms import hashes_of
from trivet.code.roles import Role
from trivet.code.search.dense import dense
from trivet.code.search.rank import RankedChunk
from trivet.code.search.view import Scores, View
from trivet.types import Contribution

MOST = 100
# A name that more places than this use or define says little about either.
COMMON = 30
ONE_WORD = 0.3
# Chunks of one project share many words; below this cosine that is all they have in common.
ALIKE = 0.5
# Tests, examples and the like use nearly everything.
NOT_CODE = 0.3
WEIGHTS = {"meaning": 1.0, "uses it": 1.0, "used by it": 1.0}


def related(view: View, chunk: int) -> list[RankedChunk]:
    """Best first, the chunk itself left out."""
    legs = {"meaning": _alike(view, chunk), "uses it": _users(view, chunk), "used by it": _used(view, chunk)}
    total: Scores = sum((WEIGHTS[leg] * scores for leg, scores in legs.items()), np.zeros(view.chunks, np.float32))
    total *= np.where(view.roles == Role.CODE, 1, NOT_CODE).astype(np.float32)
    total[chunk] = 0
    total[~view.alive] = 0
    best = [int(at) for at in np.argsort(-total, kind="stable")[:MOST] if total[at] > 0]
    return [
        RankedChunk(
            at,
            float(total[at]),
            float(total[at]),
            1.0,
            tuple(
                Contribution(
                    leg=leg, rank=1, score=float(scores[at]), normalised=float(scores[at]), weight=WEIGHTS[leg]
                )
                for leg, scores in legs.items()
                if scores[at] > 0
            ),
        )
        for at in best
    ]


def _alike(view: View, chunk: int) -> Scores:
    segment, number = view.segment_of(chunk)
    if len(segment.vectors) != segment.chunks:
        return np.zeros(view.chunks, np.float32)
    own = segment.vectors[number].astype(np.float32)
    cosines = dense(view, own / max(float(np.linalg.norm(own)), 1e-9))
    near: Scores = np.where(cosines >= ALIKE, cosines, 0).astype(np.float32)
    return near


def _users(view: View, chunk: int) -> Scores:
    """Chunks that hold a name which this one defines, the rarer the name the more."""
    scores: Scores = np.zeros(view.chunks, np.float32)
    segment, number = view.segment_of(chunk)
    for row in np.flatnonzero(segment.symbols.chunk == number):
        spans = [(one, first, one.words.span(int(segment.symbols.term[row]))) for one, first in view.placed()]
        holders = sum(span.stop - span.start for _, _, span in spans)
        if not 0 < holders <= COMMON:
            continue
        for one, first, span in spans:
            scores[one.words.holders[span] + first] += _sure(segment, int(row)) / np.sqrt(holders)
    return scores


def _used(view: View, chunk: int) -> Scores:
    """Chunks that define a name which this one holds."""
    scores: Scores = np.zeros(view.chunks, np.float32)
    segment, number = view.segment_of(chunk)
    held = np.flatnonzero(segment.words.holders == number)
    terms = segment.words.terms[np.searchsorted(segment.words.offsets, held, "right") - 1]
    for one, first in view.placed():
        rows = np.flatnonzero(np.isin(one.symbols.term, terms))
        _, place, count = np.unique(one.symbols.term[rows], return_inverse=True, return_counts=True)
        for row, defined in zip(rows.tolist(), count[place].tolist(), strict=True):
            if defined <= COMMON:
                scores[int(one.symbols.chunk[row]) + first] += _sure(one, row) / np.sqrt(defined)
    return scores


def _sure(segment: Segment, row: int) -> float:
    """A name of one word may only be a part of the name that stands there: `parse` of `parse_config`."""
    return 1.0 if len(hashes_of(segment.symbols.name.at(row))) > 1 else ONE_WORD
