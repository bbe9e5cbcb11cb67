"""The path leg: how much of the query stands in a file's name and folders, and whether the query mentions the file."""

from __future__ import annotations

from bisect import bisect_left

import msgspec
import numpy as np

from trivet.analyse.term_hash import hashed
from trivet.code.index.segment import Segment
from trivet.code.index.strings import Strings
from trivet.code.search.query import Query
from trivet.code.search.view import Scores, View, last_part, module_of

SHORTEST_PREFIX = 3
MOST_ALIKE = 30


class PathWeights(msgspec.Struct, frozen=True):
    """What a word is worth in a file's own name and in a folder's; what a mention of the file is worth, by its path
    or as a module."""

    stem: float = 1.0
    folder: float = 0.7
    mention: float = 1.0
    module: float = 0.25
    prefix: float = 0.4  # a word that begins with the other one, instead of being the same


def paths(view: View, query: Query, weights: PathWeights) -> Scores:
    """On 0..1 by chunk: the share of the query's words, by their rarity in paths, that the path holds."""
    files = sum(len(segment.path) for segment in view.segments)
    words = [(_likenesses(view, word, weights), word) for word in query.words]
    rarity = [_rarity(view, hashed(word), files) for _, word in words]
    total = sum(rarity) or 1.0
    by_file = []
    for segment in view.segments:
        share = sum(
            (rare * _held(segment, alike, weights) for (alike, _), rare in zip(words, rarity, strict=True)),
            np.zeros(len(segment.path), np.float32),
        )
        by_file.append(share / total)
    scores: Scores = (np.concatenate(by_file) + _mentioned(view, query, weights))[view.files].astype(np.float32)
    scores[~view.alive] = 0
    return np.minimum(scores, 1)


def _likenesses(view: View, word: str, weights: PathWeights) -> dict[int, float]:
    """The terms of paths that are this word, or of which one begins with the other: `auth` and `authentication`."""
    alike = {hashed(word): 1.0}
    if not weights.prefix or len(word) < SHORTEST_PREFIX:
        return alike
    shorter = [word[:length] for length in range(SHORTEST_PREFIX, len(word))]
    longer = [other for segment in view.segments for other in _beginning(segment.path_words, word)]
    return {hashed(other): weights.prefix for other in (*shorter, *longer)} | alike


def _beginning(words: Strings, start: str) -> list[str]:
    """The texts of a rising list that begin so; a few at most."""
    at = bisect_left(range(len(words)), start, key=words.at)
    found: list[str] = []
    while at < len(words) and len(found) < MOST_ALIKE and (word := words.at(at)).startswith(start):
        found.append(word)
        at += 1
    return found


def _rarity(view: View, term: int, files: int) -> float:
    holders = sum((span := segment.paths.span(term)).stop - span.start for segment in view.segments)
    return float(np.log1p((files - holders + 0.5) / (holders + 0.5)))


def _held(segment: Segment, alike: dict[int, float], weights: PathWeights) -> Scores:
    """How well each file's path holds a word: by its best likeness, in its best place."""
    worth = np.array([0.0, weights.stem, weights.folder, max(weights.stem, weights.folder)], np.float32)
    held: Scores = np.zeros(len(segment.path), np.float32)
    for term, likeness in alike.items():
        span = segment.paths.span(term)
        files = segment.paths.holders[span]
        held[files] = np.maximum(held[files], likeness * worth[segment.paths.fields[span]])
    return held


def _mentioned(view: View, query: Query, weights: PathWeights) -> Scores:
    """By file, through all segments."""
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
    """A traceback has a longer path than the tree, a person a shorter one."""
    return path == mentioned or path.endswith("/" + mentioned) or mentioned.endswith("/" + path)
