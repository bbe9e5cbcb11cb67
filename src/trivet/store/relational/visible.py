"""Which memories a filter lets through, as an array over keys, kept fresh as memories change.

The SQL predicate is evaluated once for a filter and then only for the memories that changed, so both indexes can
filter while they search and a selective filter still fills the answer.
"""

from __future__ import annotations

import threading
from collections import OrderedDict

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.clock import now
from trivet.store.relational.changes import Changes
from trivet.store.relational.database import Database
from trivet.store.relational.rows import as_json, filter_parameters
from trivet.store.relational.validity import Validity
from trivet.store.scoring import Visible
from trivet.types import Filter

# An agent recalls within one or two scopes; a server within dozens. Each costs five bytes a memory.
FILTERS_KEPT = 64


class _Entry(msgspec.Struct):
    sequence: int
    mask: NDArray[np.bool_]
    lengths: NDArray[np.float32]
    summary: tuple[int, float] | None = None


class Visibility:
    def __init__(self, database: Database, changes: Changes) -> None:
        self._database = database
        self._changes = changes
        self._validity = Validity(database, changes)
        self._entries: OrderedDict[Filter, _Entry] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, filter: Filter) -> Visible:
        with self._lock:
            entry = self._fresh(filter)
            if entry.summary is None:
                count = int(entry.mask.sum())
                entry.summary = (count, float(entry.lengths[entry.mask].mean()) if count else 0.0)
            count, mean_length = entry.summary
            hidden = self._out_of_time(entry.mask) if filter.as_of is None else ()
            if not len(hidden):
                return Visible(entry.mask, entry.lengths, count, mean_length)
            mask = entry.mask.copy()
            mask[hidden] = False
            return Visible(mask, entry.lengths, count - len(hidden), mean_length)

    def _fresh(self, filter: Filter) -> _Entry:
        sequence = self._changes.last()
        entry = self._entries.get(filter)
        if entry is None or not self._catch_up(filter, entry):
            entry = self._load(filter, sequence)
            self._entries[filter] = entry
        self._entries.move_to_end(filter)
        while len(self._entries) > FILTERS_KEPT:
            self._entries.popitem(last=False)
        return entry

    def _load(self, filter: Filter, sequence: int) -> _Entry:
        with self._database.errors():
            rows = (
                self._database.read().execute(self._database.sql.visible("keys"), filter_parameters(filter)).fetchall()
            )
        entry = _Entry(sequence, np.zeros(1, bool), np.zeros(1, np.float32))
        self._show(entry, [tuple(row) for row in rows])
        return entry

    def _catch_up(self, filter: Filter, entry: _Entry) -> bool:
        changed = self._changes.since(entry.sequence)
        if changed is None:
            return False
        if changed:
            keys = {key for _, key in changed}
            parameters = {**filter_parameters(filter), "keys": as_json(keys)}
            with self._database.errors():
                rows = self._database.read().execute(self._database.sql.visible("changed_keys"), parameters).fetchall()
            known = [key for key in keys if key < len(entry.mask)]
            entry.mask = entry.mask.copy()  # a search in another thread may still be reading the old one
            entry.mask[known] = False
            self._show(entry, [tuple(row) for row in rows])
            entry.sequence = changed[-1][0]
        return True

    def _show(self, entry: _Entry, rows: list[tuple[int, int]]) -> None:
        entry.summary = None
        if not rows:
            return
        keys, lengths = np.array(rows, dtype=np.int64).T
        size = int(keys.max()) + 2  # a False at the end, for those who look up a key of -1
        if size > len(entry.mask):
            grown = max(size, len(entry.mask) * 3 // 2)
            entry.mask = np.concatenate([entry.mask, np.zeros(grown - len(entry.mask), bool)])
            entry.lengths = np.concatenate([entry.lengths, np.zeros(grown - len(entry.lengths), np.float32)])
        entry.mask[keys] = True
        entry.lengths[keys] = lengths

    def _out_of_time(self, mask: NDArray[np.bool_]) -> NDArray[np.int64]:
        """Which of the memories shown are not valid now."""
        keys = self._validity.out_of_time(now())
        keys = keys[: np.searchsorted(keys, len(mask))]
        return keys[mask[keys]]
