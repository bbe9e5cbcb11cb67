"""The legs of code search: words (BM25), definitions, paths and vectors."""

from __future__ import annotations

from bisect import bisect_left
from typing import NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.analyse.terms import hashed
from trivet.code.encoder import CONTAINER, DOC, NAME, normalized_name
from trivet.code.index.facts import KINDS
from trivet.code.index.segment import Segment, Strings
from trivet.code.search.query import Name, Query
from trivet.code.search.view import Scores, View, blocks, last_part, module_of

# A pasted issue has hundreds of words; the rarest decide.
MAX_QUERY_TERMS = 96


class CodeBm25(msgspec.Struct, frozen=True):
    """BM25 weights: a word in a name, container or doc counts that many times."""

    k1: float = 1.2
    b: float = 0.45
    name: float = 1.0
    container: float = 1.0
    doc: float = 1.0


def lexical(view: View, query: Query, bm25: CodeBm25) -> Scores:
    scores: Scores = np.zeros(view.chunks, np.float32)
    norm = bm25.k1 * (1 - bm25.b + bm25.b * view.relative_length)
    more = _field_factors(bm25)
    for term, times, holders in _rarest(view, query):
        idf = (
            np.log1p((view.count - holders + 0.5) / (holders + 0.5))
            if holders < view.count
            else 0.0
        )
        weight = np.float32(idf * (1 + np.log(times)))
        for segment, first in view.placed():
            span = segment.words.span(term)
            chunks = segment.words.holders[span]
            frequency = segment.words.counts[span] + more[segment.words.fields[span]]
            chunks = chunks + first
            scores[chunks] += weight * frequency * (bm25.k1 + 1) / (frequency + norm[chunks])
    scores[~view.alive] = 0
    return scores


def _field_factors(bm25: CodeBm25) -> Scores:
    bits = np.arange(8)
    parts = ((NAME, bm25.name), (CONTAINER, bm25.container), (DOC, bm25.doc))
    more: Scores = sum((weight * ((bits & bit) > 0) for bit, weight in parts), np.zeros(8)).astype(
        np.float32
    )
    return more


def _rarest(view: View, query: Query) -> list[tuple[int, int, int]]:
    """Return terms with their counts in query and chunks, rarest first."""
    found = []
    for term, times in query.terms.items():
        spans = [segment.words.span(term) for segment in view.segments]
        if holders := sum(span.stop - span.start for span in spans):
            found.append((term, times, holders))
    return sorted(found, key=lambda one: one[2])[:MAX_QUERY_TERMS]


EXPORT = KINDS.index("export")


class DefinitionWeights(msgspec.Struct, frozen=True):
    """Factors for definitions.

    `spoken`: equal but for case and separators. `inside`: in the right container. `other`: `spoken`
    next to an exact match. `exported`: a re-export.
    """

    exact: float = 0.65
    spoken: float = 0.4
    inside: float = 1.5
    other: float = 0.5
    exported: float = 1.0
    crowd: float = 0.2  # a name defined in n places counts 1 / n to this power


def definitions(view: View, query: Query, weights: DefinitionWeights) -> Scores:
    """Return scores from 0 to 1."""
    scores: Scores = np.zeros(view.chunks, np.float32)
    for name in query.names:
        found = _found(view, name)
        places = max(sum(one.defines for one in found), 1)
        exactly = sum(one.defines and one.exact for one in found)
        others = weights.other if any(one.exact for one in found) else 1.0
        for one in found:
            # Names that only sound alike do not crowd an exact match.
            crowd = (exactly if one.exact and exactly else places) ** -weights.crowd
            factor = (1.0 if one.exact else others) * (1.0 if one.defines else weights.exported)
            worth = name.sure * crowd * factor * _worth(one, name, weights)
            scores[one.chunk] = max(scores[one.chunk], worth)
    scores[~view.alive] = 0
    return scores


class _Found(NamedTuple):
    segment: Segment
    row: int
    chunk: int
    exact: bool
    defines: bool


def _found(view: View, name: Name) -> list[_Found]:
    return [
        _Found(
            segment,
            row,
            first + int(segment.symbols.chunk[row]),
            segment.symbols.name.at(row) == name.written,
            bool(segment.symbols.kind[row] != EXPORT),
        )
        for segment, first in view.placed()
        for row in segment.symbols.rows(name.spoken)
    ]


def _worth(found: _Found, name: Name, weights: DefinitionWeights) -> float:
    segment, row = found.segment, found.row
    worth = weights.exact if found.exact else weights.spoken
    if name.container:
        container = segment.symbols.container.at(row).rpartition(".")[2]
        path = segment.path.at(int(segment.file[int(segment.symbols.chunk[row])]))
        stem = path.rpartition("/")[2].partition(".")[0]
        if normalized_name(name.container) in (normalized_name(container), normalized_name(stem)):
            worth *= weights.inside
    return min(worth, 1.0)


MIN_PREFIX_LENGTH = 3
MAX_SIMILAR_WORDS = 30


class PathWeights(msgspec.Struct, frozen=True):
    """Weights of words in file and folder names, and of mentioned paths and modules."""

    stem: float = 1.0
    folder: float = 0.7
    mention: float = 1.0
    module: float = 0.25
    prefix: float = 0.4  # one word begins with the other


def paths(view: View, query: Query, weights: PathWeights) -> Scores:
    """Return scores from 0 to 1: the share of query words, by rarity, in the path."""
    files = sum(len(segment.path) for segment in view.segments)
    words = [(_similar_words(view, word, weights), word) for word in query.words]
    rarity = [_rarity(view, hashed(word), files) for _, word in words]
    total = sum(rarity) or 1.0
    by_file = []
    for segment in view.segments:
        share = sum(
            (
                rare * _held(segment, alike, weights)
                for (alike, _), rare in zip(words, rarity, strict=True)
            ),
            np.zeros(len(segment.path), np.float32),
        )
        by_file.append(share / total)
    scores: Scores = (np.concatenate(by_file) + _mentioned(view, query, weights))[
        view.files
    ].astype(np.float32)
    scores[~view.alive] = 0
    return np.minimum(scores, 1)


def _similar_words(view: View, word: str, weights: PathWeights) -> dict[int, float]:
    """Include terms that begin alike: `auth` and `authentication`."""
    alike = {hashed(word): 1.0}
    if not weights.prefix or len(word) < MIN_PREFIX_LENGTH:
        return alike
    shorter = [word[:length] for length in range(MIN_PREFIX_LENGTH, len(word))]
    longer = [other for segment in view.segments for other in _beginning(segment.path_words, word)]
    return {hashed(other): weights.prefix for other in (*shorter, *longer)} | alike


def _beginning(words: Strings, start: str) -> list[str]:
    at = bisect_left(range(len(words)), start, key=words.at)
    found: list[str] = []
    while (
        at < len(words)
        and len(found) < MAX_SIMILAR_WORDS
        and (word := words.at(at)).startswith(start)
    ):
        found.append(word)
        at += 1
    return found


def _rarity(view: View, term: int, files: int) -> float:
    holders = sum((span := segment.paths.span(term)).stop - span.start for segment in view.segments)
    return float(np.log1p((files - holders + 0.5) / (holders + 0.5)))


def _held(segment: Segment, alike: dict[int, float], weights: PathWeights) -> Scores:
    worth = np.array(
        [0.0, weights.stem, weights.folder, max(weights.stem, weights.folder)], np.float32
    )
    held: Scores = np.zeros(len(segment.path), np.float32)
    for term, likeness in alike.items():
        span = segment.paths.span(term)
        files = segment.paths.holders[span]
        held[files] = np.maximum(held[files], likeness * worth[segment.paths.fields[span]])
    return held


def _mentioned(view: View, query: Query, weights: PathWeights) -> Scores:
    scores: Scores = np.zeros(sum(len(segment.path) for segment in view.segments), np.float32)
    for mentioned, worth in _mentions(query, weights):
        for number in view.file_names.get(last_part(mentioned), ()):
            path = view.path_of_file(number).lower()
            if _same_end(path, mentioned) or _same_end(module_of(path), mentioned):
                scores[number] = max(scores[number], worth)
    return scores


def _mentions(query: Query, weights: PathWeights) -> list[tuple[str, float]]:
    files = [(file, weights.mention) for file in query.files]
    return [*files, *((module, weights.module) for module in query.modules)]


def _same_end(path: str, mentioned: str) -> bool:
    """Compare ends: a traceback's path is longer than the tree's, a person's shorter."""
    return path == mentioned or path.endswith("/" + mentioned) or mentioned.endswith("/" + path)


NOWHERE = -1.0


def dense(view: View, query: NDArray[np.float32]) -> Scores:
    """Return cosines, or NOWHERE without a vector."""
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
