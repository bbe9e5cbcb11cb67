"""The terms of a long text's passages as numbers, made when its vectors are: by them a recall knows which to show.

BM25 over the posting lists, with the statistics of what the caller may see and nothing else.
"""

from __future__ import annotations

from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from trivet.analyse import LANGUAGES, NOT_ENGLISH, Reading, analyse, language_condition, mark
from trivet.memory_fields import as_json
from trivet.store.records import Bm25, Passage
from trivet.store.relational.changes import Changes
from trivet.store.relational.database import StoreDatabase, StorePart, Weights
from trivet.store.relational.ids import Ids
from trivet.store.relational.index.postings import (
    PostingCache,
    Postings,
    filter_postings,
    merge_postings,
    prefer_all_words,
    score,
    visible_postings,
)
from trivet.store.relational.index.visibility import Visibility
from trivet.types import Candidate, Filter

BYTES_PER_TERM = 4


def encode_passage_terms(content: str, passages: Sequence[Passage]) -> list[str]:
    """What is stored with each passage: base64, which every database and every copy of one takes as it is.

    Nothing for a text of one passage: there is none to choose.
    """
    if len(passages) == 1:
        return [""]
    return [
        b64encode(_term_hashes(set(analyse(content[one.start : one.stop]))).tobytes()).decode(
            "ascii"
        )
        for one in passages
    ]


def count_held_terms(wanted: Iterable[str], stored: Sequence[str]) -> list[int]:
    """How many of these terms each passage holds.

    A number of 32 bits stands for one of a passage's two hundred terms by mistake once in twenty million times.
    """
    packed = [
        a2b_base64(one) for one in stored
    ]  # what base64's own function calls, in half of the time
    terms = np.frombuffer(b"".join(packed), np.uint32)
    ends = np.cumsum([0, *(len(one) // BYTES_PER_TERM for one in packed)])
    counted = np.concatenate(([0], np.cumsum(np.isin(terms, _term_hashes(wanted)))))
    found: list[int] = np.diff(counted[ends]).tolist()
    return found


def _term_hashes(terms: Iterable[str]) -> NDArray[np.uint32]:
    return np.array([crc32(term.encode(errors="surrogatepass")) for term in terms], np.uint32)


# One changed word of a short text changes most of its few pairs.
SHORT_FINGERPRINT = 8
# So many of the latest memories with a hash are looked at. Of two texts that are nearly the same some pairs are rare:
# by those an older one is found.
MAX_SIMILAR_CANDIDATES = 200
EMPTY_TERMS: frozenset[str] = frozenset()
NO_OTHER_READINGS: Mapping[str, Sequence[Reading]] = {}
# The marks of languages stand among the keywords, whatever weight a search gives those.
LANGUAGE_MARK_WEIGHTS: Weights = (0.0, 0.0, 1.0, 0.0, 0.0)


class LexicalIndex(StorePart):
    file = "lexical"

    def __init__(
        self, database: StoreDatabase, visibility: Visibility, changes: Changes, ids: Ids
    ) -> None:
        super().__init__(database)
        self._visibility, self._changes = visibility, changes
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
        others: Mapping[str, Sequence[Reading]] = NO_OTHER_READINGS,
    ) -> list[Candidate]:
        """The best `depth` memories; those that hold all `required` terms alone, if there are `enough` of them.

        A memory holds a term as well if it holds one of its `others` and is in the language of that one.
        """
        visible = self._visibility.of(filter)
        shown = self._shown(terms, filter, bm25.field_weights)
        for term, readings in others.items():
            shown[term] = merge_postings(
                [
                    shown[term],
                    *(visible_postings(one, visible) for one in self._read(readings, bm25)),
                ]
            )
        lists = {term: postings for term, postings in shown.items() if len(postings.keys)}
        if not lists:
            return []
        scores = score(lists, visible, bm25)
        if required and all(term in lists for term in required):
            scores = prefer_all_words(scores, [lists[term] for term in required], enough)
        return self._best(scores, depth)

    def languages(self, filter: Filter) -> tuple[str, ...]:
        """The languages other than English that visible memories are written in."""
        # Most stores have none, and to look for each would cost more than the rest of a query's analysis.
        if not len(self._shown([NOT_ENGLISH], filter, LANGUAGE_MARK_WEIGHTS)[NOT_ENGLISH].keys):
            return ()
        marked = self._shown(
            [mark(language) for language in LANGUAGES], filter, LANGUAGE_MARK_WEIGHTS
        )
        return tuple(language for language in LANGUAGES if len(marked[mark(language)].keys))

    def _shown(self, terms: Sequence[str], filter: Filter, weights: Weights) -> dict[str, Postings]:
        """The posting lists as far as the filter lets them through. Parts of one recall ask for the same ones."""
        known: dict[str, Postings] = self._changes.kept((self, filter, weights), dict)
        missing = [term for term in terms if term not in known]
        if missing:
            visible = self._visibility.of(filter)
            lists = self._postings.of(missing, weights)
            known.update(
                (term, visible_postings(postings, visible)) for term, postings in lists.items()
            )
        return {term: known[term] for term in terms}

    def _read(self, readings: Sequence[Reading], bm25: Bm25) -> list[Postings]:
        """The list of each reading's term, as far as its memories are in the reading's language."""
        kept = self._postings.of([reading.term for reading in readings], bm25.field_weights)
        marks = {language: language_condition(language) for _, language in readings}
        marked = self._postings.of([sign for sign, _ in marks.values()], LANGUAGE_MARK_WEIGHTS)
        return [
            filter_postings(kept[term], marked[marks[language][0]], held=marks[language][1])
            for term, language in readings
        ]

    def similar(
        self, id: str, fingerprint: Sequence[int], limit: int, viewer: str | None = None
    ) -> list[str]:
        """Ids of memories other than `id` that share part of the fingerprint; the caller compares them properly."""
        shared = 1 if len(fingerprint) < SHORT_FINGERPRINT else 2
        rows = self._rows(
            "similar",
            id=id,
            hashes=as_json(fingerprint),
            shared=shared,
            latest=MAX_SIMILAR_CANDIDATES,
            limit=limit,
            viewer=viewer,
        )
        return [row[0] for row in rows]

    def holders(self, terms: Sequence[str], filter: Filter, bm25: Bm25) -> dict[str, int]:
        """How many visible memories hold each term. With the weights of the search its posting lists are at hand."""
        return {
            term: len(found.keys)
            for term, found in self._shown(terms, filter, bm25.field_weights).items()
        }

    def terms_from(self, start: str) -> list[str]:
        """The terms that begin so and that any memory holds, whoever may see it: ask `holders` before one is told."""
        return [
            row[0]
            for row in self._rows(
                "terms_from", low=start, high=start[:-1] + chr(ord(start[-1]) + 1)
            )
        ]

    def terms_in_any_memory(self, terms: Collection[str]) -> set[str] | None:
        """Those of the terms that any memory holds, whoever may see it; None where no index file tells."""
        return self._postings.held(terms)

    def held(
        self, terms: Sequence[str], ids: Sequence[str], bm25: Bm25
    ) -> dict[str, frozenset[str]]:
        """Which of the terms each of these memories holds, in any field that has a weight."""
        keys = self._ids.keys(ids)
        wanted = np.fromiter(keys.values(), np.int64, len(keys))
        lists = self._postings.of(terms, bm25.field_weights)
        some = {
            term: _among(wanted, postings.keys)
            for term, postings in lists.items()
            if len(postings.keys)
        }
        held = zip(*some.values(), strict=True) if some else [()] * len(keys)
        found = {
            id: frozenset(compress(some, is_held)) for id, is_held in zip(keys, held, strict=True)
        }
        return {id: found.get(id, EMPTY_TERMS) for id in ids}

    def _best(self, scores: NDArray[np.float64], depth: int) -> list[Candidate]:
        found = np.flatnonzero(scores > 0)  # of truth values, which numpy finds four times as fast
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


def _among(wanted: NDArray[np.int64], keys: NDArray[np.int64]) -> list[bool]:
    """Which of those wanted are among the keys, of which there is at least one."""
    places = np.minimum(keys.searchsorted(wanted), len(keys) - 1)
    held: list[bool] = (keys[places] == wanted).tolist()
    return held
