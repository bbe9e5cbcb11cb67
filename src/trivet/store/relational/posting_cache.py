"""Posting lists kept in memory, fresh by the record of changes: scoring them here takes well under a millisecond."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import Counter
from collections.abc import Collection, Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.bounded_cache import MIB, BoundedCache
from trivet.store.relational.changes import Changes
from trivet.store.relational.database import StoreDatabase, Weights
from trivet.store.relational.mapped_index import MappedIndex
from trivet.store.scoring import Postings

# For posting lists: 16 bytes a posting, and so much for a list, however short. A word that no memory holds has one too.
POSTINGS_BYTES = 48 * MIB
LIST_BYTES = 500
# For the terms of memories that changed since lists were read.
DOCUMENTS_BYTES = 8 * MIB
# A term and its count in a dictionary; terms are short.
TERM_BYTES = 200
# A term that missed more changes than this is read anew rather than mended, unless it has so many holders that to read
# them takes longer.
CHANGES_MENDED = 300
MENDED_SHARE = 0.2
MOST_LOGGED = 3_000


# Of each indexed field of a memory, how often it holds each term.
_Document = tuple[Counter[str], ...]


class _Entry(msgspec.Struct, frozen=True):
    sequence: int
    postings: Postings


class PostingCache:
    def __init__(self, database: StoreDatabase, changes: Changes) -> None:
        self._database = database
        self._changes = changes
        self._index: MappedIndex | None = None  # its lists are mended from the first change in the log on
        self._sql = database.sql("lexical")
        self._lock = threading.Lock()
        self._entries: BoundedCache[tuple[str, Weights], _Entry] = BoundedCache(POSTINGS_BYTES, _entry_bytes)
        self._log: list[tuple[int, int]] = []
        self._log_start = 0
        self._documents: BoundedCache[int, _Document] = BoundedCache(DOCUMENTS_BYTES, _document_bytes)

    def of(self, terms: Iterable[str], weights: Weights) -> dict[str, Postings]:
        """The list of each term, as of one moment."""
        with self._lock:
            known, bound = self._follow(), self._changes.bound
            sequence = known if bound is None else min(known, bound)
            found = {term: self._fresh(term, weights, sequence) for term in terms}
            if sequence < known:  # documents were read as they were at that moment, and are something else by now
                self._documents.clear()
            return found

    def held(self, terms: Collection[str]) -> set[str] | None:
        """Those of the terms that are in the index file or in a memory that changed since; None without a file."""
        with self._lock:
            self._follow()
            if self._index is None:
                return None
            changed = {key for _, key in self._log}
            new = {term for key in changed for field in self._document(key) for term in field.keys() & terms}
            return self._index.held(terms) | new

    def _fresh(self, term: str, weights: Weights, sequence: int) -> Postings:
        entry = known = self._entries.get((term, weights))
        if entry is None or entry.sequence < self._log_start:
            entry = self._from_file(term, weights) or self._read(term, weights, sequence)
        if entry.sequence < sequence:
            entry = self._mend(term, weights, entry, sequence)
        if entry is not known:
            self._entries.put((term, weights), entry)
        return entry.postings

    def _read(self, term: str, weights: Weights, sequence: int) -> _Entry:
        return _Entry(sequence, self._database.read_postings(term, weights))

    def _from_file(self, term: str, weights: Weights) -> _Entry | None:
        if self._index is None:
            return None
        return _Entry(self._index.sequence, postings_of(self._index.occurrences(term), weights))

    def _begin(self) -> None:
        """Forgets what is known, and goes on from the index file if it reaches near enough, else from now."""
        self._log, self._log_start = [], self._changes.last()
        self._documents.clear()
        self._index = self._database.mapped_index()
        if self._index is None:
            return
        changed = self._changes.since(self._index.sequence)
        if changed is None or len(changed) > MOST_LOGGED:
            self._index = None
        else:
            self._log, self._log_start = changed, self._index.sequence

    def _follow(self) -> int:
        """Takes in the changes since the last look and says up to which one this cache now knows."""
        known = self._log[-1][0] if self._log else self._log_start
        changed = self._changes.since(known)
        if changed is None or len(self._log) + len(changed) > MOST_LOGGED:
            self._begin()
        elif changed:
            self._log.extend(changed)
            for _, key in changed:
                self._documents.drop(key)
        return self._log[-1][0] if self._log else self._log_start

    def _mend(self, term: str, weights: Weights, entry: _Entry, sequence: int) -> _Entry:
        start = bisect_right(self._log, entry.sequence, key=lambda change: change[0])
        changed = sorted({key for _, key in self._log[start:]})
        if len(changed) > max(CHANGES_MENDED, MENDED_SHARE * len(entry.postings.keys)):
            return self._read(term, weights, sequence)
        kept = ~np.isin(entry.postings.keys, changed)
        found = [(key, self._frequency(key, term, weights)) for key in changed]
        keys = np.array([key for key, frequency in found if frequency > 0], np.int64)
        if kept.all() and not len(keys):
            return _Entry(sequence, entry.postings)
        frequencies = np.array([frequency for _, frequency in found if frequency > 0])
        all_keys = np.concatenate([entry.postings.keys[kept], keys])
        order = np.argsort(all_keys, kind="stable")
        all_frequencies = np.concatenate([entry.postings.frequencies[kept], frequencies])
        return _Entry(sequence, Postings(all_keys[order], all_frequencies[order]))

    def _frequency(self, key: int, term: str, weights: Weights) -> float:
        document = self._document(key)
        return float(sum(weight * field[term] for weight, field in zip(weights, document, strict=False)))

    def _document(self, key: int) -> _Document:
        document = self._documents.get(key)
        if document is None:
            with self._database.errors():
                row = self._database.read().execute(self._sql["document"], {"key": key}).fetchone()
            document = tuple(Counter(text.split(" ")) for text in row) if row else ()
            self._documents.put(key, document)
        return document


def postings_of(occurrences: NDArray[np.integer], weights: Weights) -> Postings:
    """Of where a term stands: key * 8 + field in the order of keys, an entry for each time."""
    holders = (occurrences >> 3).astype(np.int64)
    firsts = np.diff(holders, prepend=-1) > 0
    frequencies = np.bincount(np.cumsum(firsts) - 1, weights=np.asarray(weights)[occurrences & 7])
    held = frequencies > 0  # a field of weight 0 does not hold the term
    return Postings(holders[firsts][held], frequencies[held].astype(np.float64))


def _entry_bytes(entry: _Entry) -> int:
    return LIST_BYTES + entry.postings.keys.nbytes + entry.postings.frequencies.nbytes


def _document_bytes(document: _Document) -> int:
    return sum(TERM_BYTES * (1 + len(field)) for field in document)
