"""The lexical leg: BM25 over the words of chunks, where a word in a name or a comment counts more."""

from __future__ import annotations

import msgspec
import numpy as np

from trivet.code.encoder import CONTAINER, DOC, NAME
from trivet.code.search.query import Query
from trivet.code.search.view import Scores, View

# A pasted issue has hundreds of words; the rarest decide.
MOST_TERMS = 96


class CodeBm25(msgspec.Struct, frozen=True):
    """`name`, `container` and `doc` are how many further occurrences a word counts as that stands there."""

    k1: float = 1.2
    b: float = 0.45
    name: float = 1.0
    container: float = 1.0
    doc: float = 1.0


def lexical(view: View, query: Query, bm25: CodeBm25) -> Scores:
    scores: Scores = np.zeros(view.chunks, np.float32)
    norm = bm25.k1 * (1 - bm25.b + bm25.b * view.relative_length)
    more = _more(bm25)
    for term, times, holders in _rarest(view, query):
        idf = np.log1p((view.count - holders + 0.5) / (holders + 0.5)) if holders < view.count else 0.0
        weight = np.float32(idf * (1 + np.log(times)))
        for segment, first in view.placed():
            span = segment.words.span(term)
            chunks = segment.words.holders[span]
            frequency = segment.words.counts[span] + more[segment.words.fields[span]]
            chunks = chunks + first
            scores[chunks] += weight * frequency * (bm25.k1 + 1) / (frequency + norm[chunks])
    scores[~view.alive] = 0
    return scores


def _more(bm25: CodeBm25) -> Scores:
    """What a set of fields adds, by the number that the set is stored as."""
    bits = np.arange(8)
    parts = ((NAME, bm25.name), (CONTAINER, bm25.container), (DOC, bm25.doc))
    more: Scores = sum((weight * ((bits & bit) > 0) for bit, weight in parts), np.zeros(8)).astype(np.float32)
    return more


def _rarest(view: View, query: Query) -> list[tuple[int, int, int]]:
    """The terms that chunks hold, with how often the query says them and how many chunks hold them."""
    found = []
    for term, times in query.terms.items():
        spans = [segment.words.span(term) for segment in view.segments]
        if holders := sum(span.stop - span.start for span in spans):
            found.append((term, times, holders))
    return sorted(found, key=lambda one: one[2])[:MOST_TERMS]
