"""The lexical index: BM25 over visible memories, and hashed terms that choose passages to show."""

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
    """Return base64, which every database takes; nothing for an only passage."""
    if len(passages) == 1:
        return [""]
    return [
        b64encode(
            _term_hashes(set(analyse(content[passage.start : passage.stop]))).tobytes()
        ).decode("ascii")
        for passage in passages
    ]


def count_held_terms(wanted: Iterable[str], stored: Sequence[str]) -> list[int]:
    """Count wanted terms per passage; hashes err in one of 20 million passages of 200 terms."""
    # In half the time of base64.b64decode, which calls it.
    packed = [a2b_base64(passage) for passage in stored]
    terms = np.frombuffer(b"".join(packed), np.uint32)
    ends = np.cumsum([0, *(len(passage) // BYTES_PER_TERM for passage in packed)])
    counted = np.concatenate(([0], np.cumsum(np.isin(terms, _term_hashes(wanted)))))
    found: list[int] = np.diff(counted[ends]).tolist()
    return found


def _term_hashes(terms: Iterable[str]) -> NDArray[np.uint32]:
    return np.array([crc32(term.encode(errors="surrogatepass")) for term in terms], np.uint32)


# Shorter fingerprints need to share only one hash: one changed word changes most of them.
SHORT_FINGERPRINT = 8
# Candidates per hash; near-duplicates also share rare hashes, which find older ones.
MAX_SIMILAR_CANDIDATES = 200
EMPTY_TERMS: frozenset[str] = frozenset()
NO_OTHER_READINGS: Mapping[str, Sequence[Reading]] = {}
# Language marks are stored as keywords.
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
        """Return the best `depth` memories.

        If `enough` hold all `required` terms, return only those. A memory in the language of one of
        a term's `others` may hold that reading instead.
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
        # Most stores have none; checking each language costs more than the rest of the analysis.
        if not len(self._shown([NOT_ENGLISH], filter, LANGUAGE_MARK_WEIGHTS)[NOT_ENGLISH].keys):
            return ()
        marked = self._shown(
            [mark(language) for language in LANGUAGES], filter, LANGUAGE_MARK_WEIGHTS
        )
        return tuple(language for language in LANGUAGES if len(marked[mark(language)].keys))

    def _shown(self, terms: Sequence[str], filter: Filter, weights: Weights) -> dict[str, Postings]:
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
        """Count visible holders; with the search's weights the lists are cached."""
        return {
            term: len(found.keys)
            for term, found in self._shown(terms, filter, bm25.field_weights).items()
        }

    def terms_from(self, start: str) -> list[str]:
        """Return terms with this prefix in any memory; check `holders` before revealing one."""
        return [
            row[0]
            for row in self._rows(
                "terms_from", low=start, high=start[:-1] + chr(ord(start[-1]) + 1)
            )
        ]

    def terms_in_any_memory(self, terms: Collection[str]) -> set[str] | None:
        """Return those of the terms in any memory; None without an index file."""
        return self._postings.held(terms)

    def held(
        self, terms: Sequence[str], ids: Sequence[str], bm25: Bm25
    ) -> dict[str, frozenset[str]]:
        """Return which terms each memory holds, in any field with a weight."""
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
        found = np.flatnonzero(scores > 0)  # four times as fast on booleans as on floats
        if len(found) > depth:
            cut = np.partition(scores[found], len(found) - depth)[len(found) - depth]
            found = found[scores[found] >= cut]  # keep ties; the ids decide
        ids = self._ids.of(found.tolist())
        ranked = [
            Candidate(id=ids[key], score=score)
            for key, score in zip(found.tolist(), scores[found].tolist(), strict=True)
            if key in ids
        ]
        ranked.sort(key=lambda candidate: (-candidate.score, candidate.id))
        return ranked[:depth]


def _among(wanted: NDArray[np.int64], keys: NDArray[np.int64]) -> list[bool]:
    """Return which of `wanted` are among `keys`, which must not be empty."""
    places = np.minimum(keys.searchsorted(wanted), len(keys) - 1)
    held: list[bool] = (keys[places] == wanted).tolist()
    return held
