"""Posting lists kept in memory, fresh by the record of changes: scoring them here takes well under a millisecond."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import Counter, OrderedDict
from collections.abc import Iterable

import msgspec
import numpy as np

from trivet.store.relational.changes import Changes
from trivet.store.relational.database import StoreDatabase, Weights
from trivet.store.scoring import Postings

# A bound on memory: 16 bytes a posting, so 32 MiB. The least recently used terms go first.
POSTINGS_KEPT = 2_000_000
# A term that missed more changes than this is read anew rather than mended.
CHANGES_MENDED = 300


class _Entry(msgspec.Struct, frozen=True):
    sequence: int
    postings: Postings


class PostingCache:
    def __init__(self, database: StoreDatabase, changes: Changes) -> None:
        self._database = database
        self._changes = changes
        self._read = database.read_postings
        self._sql = database.sql("lexical")
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[str, Weights], _Entry] = OrderedDict()
        self._size = 0
        self._log: list[tuple[int, int]] = []
        self._log_start = 0
        self._documents: dict[int, tuple[Counter[str], ...]] = {}

    def of(self, terms: Iterable[str], weights: Weights) -> dict[str, Postings]:
        """The list of each term, as of one moment."""
        with self._lock:
            known, bound = self._follow(), self._changes.bound
            sequence = known if bound is None else min(known, bound)
            found = {term: self._fresh(term, weights, sequence) for term in terms}
            if sequence < known:  # documents were read as they were at that moment, and are something else by now
                self._documents = {}
            return found

    def _fresh(self, term: str, weights: Weights, sequence: int) -> Postings:
        entry = self._entries.get((term, weights))
        if entry is None or entry.sequence < self._log_start:
            entry = _Entry(sequence, self._read(term, weights))
        elif entry.sequence < sequence:
            entry = self._mend(term, weights, entry, sequence)
        self._keep((term, weights), entry)
        return entry.postings

    def _follow(self) -> int:
        """Takes in the changes since the last look and says up to which one this cache now knows."""
        known = self._log[-1][0] if self._log else self._log_start
        changed = self._changes.since(known)
        if changed is None or len(self._log) + len(changed) > 10 * CHANGES_MENDED:
            self._log, self._log_start, self._documents = [], self._changes.last(), {}
        elif changed:
            self._log.extend(changed)
            for _, key in changed:
                self._documents.pop(key, None)
        return self._log[-1][0] if self._log else self._log_start

    def _mend(self, term: str, weights: Weights, entry: _Entry, sequence: int) -> _Entry:
        start = bisect_right(self._log, entry.sequence, key=lambda change: change[0])
        changed = sorted({key for _, key in self._log[start:]})
        if len(changed) > CHANGES_MENDED:
            return _Entry(sequence, self._read(term, weights))
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
        document = self._documents.get(key)
        if document is None:
            with self._database.errors():
                row = self._database.read().execute(self._sql["document"], {"key": key}).fetchone()
            document = tuple(Counter(text.split(" ")) for text in row) if row else ()
            self._documents[key] = document
        return float(sum(weight * field[term] for weight, field in zip(weights, document, strict=False)))

    def _keep(self, name: tuple[str, Weights], entry: _Entry) -> None:
        previous = self._entries.pop(name, None)
        self._size += len(entry.postings.keys) - (len(previous.postings.keys) if previous else 0)
        self._entries[name] = entry
        while self._size > POSTINGS_KEPT and len(self._entries) > 1:
            _, dropped = self._entries.popitem(last=False)
            self._size -= len(dropped.postings.keys)
