"""BM25 over posting lists in memory, with statistics of visible memories only."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence, Set

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.common.bounded_cache import MIB, BoundedCache
from trivet.memory_fields import as_json
from trivet.store.records import Bm25
from trivet.store.relational.changes import Changes
from trivet.store.relational.database import StoreDatabase, Weights
from trivet.store.relational.index.index_files import MappedIndex

# A word in a larger share of many memories adds to scores but brings in no memory.
COMMON_TERM_SHARE = 0.05
COMMON_TERM_MIN_MEMORIES = 2_000
# The rarest words decide for a pasted page.
MAX_SCORED_TERMS = 64


class Postings(msgspec.Struct, frozen=True):
    """A term's holders, keys rising, and field-weighted frequencies."""

    keys: NDArray[np.int64]
    frequencies: NDArray[np.float64]


class VisibleMemories(msgspec.Struct, frozen=True):
    """Visibility, length in terms and importance by key."""

    mask: NDArray[np.bool_]
    lengths: NDArray[np.float32]
    importances: NDArray[np.float64]
    count: int
    mean_length: float


def visible_postings(postings: Postings, visible: VisibleMemories) -> Postings:
    keys = postings.keys
    if len(keys) and keys[-1] >= len(visible.mask):
        keys = keys[: np.searchsorted(keys, len(visible.mask))]
    shown = visible.mask[keys]
    if shown.all():
        return (
            postings
            if len(keys) == len(postings.keys)
            else Postings(keys, postings.frequencies[: len(keys)])
        )
    return Postings(keys[shown], postings.frequencies[: len(keys)][shown])


def merge_postings(lists: Sequence[Postings]) -> Postings:
    """Merge terms that are one word; a memory's frequency is the largest."""
    keys, places = np.unique(
        np.concatenate([postings.keys for postings in lists]), return_inverse=True
    )
    frequencies = np.zeros(len(keys))
    np.maximum.at(frequencies, places, np.concatenate([postings.frequencies for postings in lists]))
    return Postings(keys, frequencies)


def filter_postings(postings: Postings, marked: Postings, held: bool) -> Postings:
    kept = np.isin(postings.keys, marked.keys, assume_unique=True, invert=not held)
    return Postings(postings.keys[kept], postings.frequencies[kept])


def score(lists: dict[str, Postings], visible: VisibleMemories, bm25: Bm25) -> NDArray[np.float64]:
    """Return scores by key: the sum of idf * tf (k1 + 1) / (tf + k1 (1 - b + b length / mean))."""
    rarest = sorted(lists.values(), key=lambda postings: len(postings.keys))[:MAX_SCORED_TERMS]
    common = max(COMMON_TERM_MIN_MEMORIES, COMMON_TERM_SHARE * visible.count)
    informative = [postings for postings in rarest if len(postings.keys) <= common] or rarest[:1]
    scores = np.zeros(len(visible.mask))
    for postings in informative:
        scores[postings.keys] += _weights(postings, visible, bm25)
    for postings in rarest[len(informative) :]:
        candidate = scores[postings.keys] > 0
        kept = Postings(postings.keys[candidate], postings.frequencies[candidate])
        scores[kept.keys] += _weights(kept, visible, bm25, holders=len(postings.keys))
    return scores


def _weights(
    postings: Postings, visible: VisibleMemories, bm25: Bm25, holders: int | None = None
) -> NDArray[np.float64]:
    count = len(postings.keys) if holders is None else holders
    idf = np.log1p((visible.count - count + 0.5) / (count + 0.5))
    relative_length = visible.lengths[postings.keys] / max(visible.mean_length, 1e-9)
    frequencies = postings.frequencies
    saturated = (
        frequencies
        * (bm25.k1 + 1)
        / (frequencies + bm25.k1 * (1 - bm25.b + bm25.b * relative_length))
    )
    weights: NDArray[np.float64] = idf * saturated
    return weights


def prefer_all_words(
    scores: NDArray[np.float64], required: list[Postings], enough: int
) -> NDArray[np.float64]:
    """Keep only holders of every required term, if there are enough."""
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


# 16 bytes per posting, plus LIST_BYTES per list, even an empty one.
POSTINGS_BYTES = 48 * MIB
LIST_BYTES = 500
# For memories changed since lists were read.
DOCUMENTS_BYTES = 8 * MIB
# Estimate for a term and its counts in a dictionary.
TERM_BYTES = 250
DOCUMENTS_AT_ONCE = 100
# After more changes a list is read again, unless it is so long that reading takes longer.
MAX_CHANGES_PATCHED = 300
PATCHED_SHARE = 0.2
MAX_LOG_LENGTH = 3_000
# Sums of multiples of 1 / this are exact in any order, which halves the time.
EXACT_WEIGHT_FRACTION = 1_024.0


# Counts of a term by indexed field.
_Counts = tuple[int, ...]
# Counts by term.
_Document = Mapping[str, _Counts]
NO_TERMS: _Document = {}


class _Entry(msgspec.Struct, frozen=True):
    sequence: int
    postings: Postings


class _ChangesSince:
    """Memories changed after a list was read and, once needed, their terms."""

    def __init__(self, keys: NDArray[np.int64], wanted: Set[str]) -> None:
        self.keys = keys
        self.wanted = wanted
        self.counts: Mapping[str, Sequence[tuple[int, _Counts]]] | None = None


class PostingCache:
    def __init__(self, database: StoreDatabase, changes: Changes) -> None:
        self._database = database
        self._changes = changes
        # Its lists start at the first change in the log.
        self._index: MappedIndex | None = None
        self._sql = database.sql("lexical")
        self._lock = threading.Lock()
        self._entries: BoundedCache[tuple[str, Weights], _Entry] = BoundedCache(
            POSTINGS_BYTES, _entry_bytes
        )
        self._log: list[tuple[int, int]] = []
        self._log_start = 0
        self._documents: BoundedCache[int, _Document] = BoundedCache(
            DOCUMENTS_BYTES, _document_bytes
        )

    def of(self, terms: Iterable[str], weights: Weights) -> dict[str, Postings]:
        with self._lock:
            known, bound = self._follow(), self._changes.bound
            sequence = known if bound is None else min(known, bound)
            found = self._fresh(terms, weights, sequence)
            if sequence < known:  # documents were read as of an older moment
                self._documents.clear()
            return found

    def held(self, terms: Collection[str]) -> set[str] | None:
        with self._lock:
            self._follow()
            if self._index is None:
                return None
            return (
                self._index.held(terms)
                | self._counts(list({key for _, key in self._log}), set(terms)).keys()
            )

    def _fresh(self, terms: Iterable[str], weights: Weights, sequence: int) -> dict[str, Postings]:
        """Read missing lists together, to save round trips."""
        wanted = set(terms)
        since: dict[int, _ChangesSince] = {}
        entries = {
            term: self._patched_entry(term, weights, sequence, wanted, since) for term in wanted
        }
        missing = [term for term, entry in entries.items() if entry is None]
        found = {term: entry.postings for term, entry in entries.items() if entry is not None}
        for term, postings in (
            self._database.read_postings(missing, weights) if missing else {}
        ).items():
            found[term] = postings
            self._entries.put((term, weights), _Entry(sequence, postings))
        return found

    def _patched_entry(
        self,
        term: str,
        weights: Weights,
        sequence: int,
        wanted: Set[str],
        since: dict[int, _ChangesSince],
    ) -> _Entry | None:
        entry = known = self._entries.get((term, weights))
        if entry is None or entry.sequence < self._log_start:
            entry = self._from_file(term, weights)
        if entry is not None and entry.sequence < sequence:
            if entry.sequence not in since:
                since[entry.sequence] = _ChangesSince(self._changed_after(entry.sequence), wanted)
            changed = since[entry.sequence]
            few = len(changed.keys) <= max(
                MAX_CHANGES_PATCHED, PATCHED_SHARE * len(entry.postings.keys)
            )
            entry = (
                _Entry(sequence, self._patch(term, weights, entry.postings, changed))
                if few
                else None
            )
        if entry is not None and entry is not known:
            self._entries.put((term, weights), entry)
        return entry

    def _from_file(self, term: str, weights: Weights) -> _Entry | None:
        if self._index is None:
            return None
        return _Entry(
            self._index.sequence, postings_from_occurrences(self._index.occurrences(term), weights)
        )

    def _begin(self) -> None:
        self._log, self._log_start = [], self._changes.last()
        self._documents.clear()
        self._index = self._database.mapped_index()
        if self._index is None:
            return
        changed = self._changes.since(self._index.sequence)
        if changed is None or len(changed) > MAX_LOG_LENGTH:
            self._index = None
        else:
            self._log, self._log_start = changed, self._index.sequence

    def _follow(self) -> int:
        known = self._log[-1][0] if self._log else self._log_start
        changed = self._changes.since(known)
        if changed is None or len(self._log) + len(changed) > MAX_LOG_LENGTH:
            self._begin()
        elif changed:
            self._log.extend(changed)
            for _, key in changed:
                self._documents.drop(key)
        return self._log[-1][0] if self._log else self._log_start

    def _changed_after(self, sequence: int) -> NDArray[np.int64]:
        start = bisect_right(self._log, sequence, key=lambda change: change[0])
        return np.unique(np.array([key for _, key in self._log[start:]], np.int64))

    def _patch(
        self, term: str, weights: Weights, postings: Postings, changed: _ChangesSince
    ) -> Postings:
        if changed.counts is None:
            changed.counts = self._counts(changed.keys.tolist(), changed.wanted)
        kept = np.ones(len(postings.keys), bool)
        kept[positions_of(changed.keys, postings.keys)] = False
        held = [(key, _weighted(counts, weights)) for key, counts in changed.counts.get(term, ())]
        held = [(key, frequency) for key, frequency in held if frequency > 0]
        if kept.all() and not held:
            return postings
        keys = np.concatenate([postings.keys[kept], np.array([key for key, _ in held], np.int64)])
        frequencies = np.concatenate(
            [postings.frequencies[kept], np.array([one for _, one in held], np.float64)]
        )
        order = np.argsort(keys, kind="stable")
        return Postings(keys[order], frequencies[order])

    def _counts(
        self, keys: Sequence[int], wanted: Set[str]
    ) -> dict[str, list[tuple[int, _Counts]]]:
        found: dict[str, list[tuple[int, _Counts]]] = {}
        for start in range(0, len(keys), DOCUMENTS_AT_ONCE):
            for key, document in self._documents_of(
                keys[start : start + DOCUMENTS_AT_ONCE]
            ).items():
                for term in document.keys() & wanted:
                    found.setdefault(term, []).append((key, document[term]))
        return found

    def _documents_of(self, keys: Sequence[int]) -> dict[int, _Document]:
        found = {key: self._documents.get(key) for key in keys}
        missing = [key for key, document in found.items() if document is None]
        if missing:
            with self._database.errors():
                rows = (
                    self._database.read()
                    .execute(self._sql["documents_of"], {"keys": as_json(missing)})
                    .fetchall()
                )
            read = dict.fromkeys(missing, NO_TERMS) | {row[0]: _document(row[1:]) for row in rows}
            for key, document in read.items():
                found[key] = document
                self._documents.put(key, document)
        return {key: document for key, document in found.items() if document is not None}


def _document(fields: Sequence[str]) -> _Document:
    document: dict[str, list[int]] = {}
    for place, text in enumerate(fields):
        for term in text.split(" "):
            document.setdefault(term, [0] * len(fields))[place] += 1
    return {term: tuple(counts) for term, counts in document.items()}


def _weighted(counts: _Counts, weights: Weights) -> float:
    return float(sum(weight * count for weight, count in zip(weights, counts, strict=True)))


def positions_of(some: NDArray[np.int64], keys: NDArray[np.int64]) -> NDArray[np.intp]:
    """Return the positions in rising `keys` of those of `some` that occur."""
    places = keys.searchsorted(some)
    within = places < len(keys)
    held = keys[places[within]] == some[within]
    found: NDArray[np.intp] = places[within][held]
    return found


def postings_from_occurrences(occurrences: NDArray[np.integer], weights: Weights) -> Postings:
    """Decode rising key * 8 + field, one entry per occurrence."""
    holders = occurrences >> 3
    is_first = np.ones(len(holders), bool)
    np.not_equal(holders[1:], holders[:-1], out=is_first[1:])
    firsts, fields = np.flatnonzero(is_first), occurrences & 7
    keys = holders[firsts].astype(np.int64)
    if all((EXACT_WEIGHT_FRACTION * weight).is_integer() for weight in weights):
        frequencies = _sum_weights(np.asarray(weights).take(fields), is_first, firsts)
    else:
        frequencies = _weighted_counts(np.cumsum(is_first) - 1, fields, weights)
    held = frequencies > 0  # a field of weight 0 does not hold the term
    return Postings(keys, frequencies) if held.all() else Postings(keys[held], frequencies[held])


def _sum_weights(
    weights: NDArray[np.float64], is_first: NDArray[np.bool_], firsts: NDArray[np.intp]
) -> NDArray[np.float64]:
    frequencies = weights[firsts]
    others = np.flatnonzero(~is_first)
    np.add.at(frequencies, others - np.arange(1, len(others) + 1), weights[others])
    return frequencies


def _weighted_counts(
    places: NDArray[np.intp], fields: NDArray[np.integer], weights: Weights
) -> NDArray[np.float64]:
    """Add up like PostgreSQL and `_weighted`: other orders differ in the last digit."""
    frequencies = np.zeros(int(places[-1]) + 1 if len(places) else 0)
    for field, weight in enumerate(weights):
        frequencies += weight * np.bincount(places[fields == field], minlength=len(frequencies))
    return frequencies


def _entry_bytes(entry: _Entry) -> int:
    return LIST_BYTES + entry.postings.keys.nbytes + entry.postings.frequencies.nbytes


def _document_bytes(document: _Document) -> int:
    return TERM_BYTES * (1 + len(document))
