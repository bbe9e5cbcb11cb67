"""The memories that a filter lets through, as arrays over keys."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.common.bounded_cache import MIB, BoundedCache
from trivet.common.clock import next_stamp, now
from trivet.memory_fields import as_json
from trivet.store.relational.changes import Changes
from trivet.store.relational.database import Database, Row, StoreDatabase
from trivet.store.relational.index.index_files import covers_filter
from trivet.store.relational.index.postings import VisibleMemories
from trivet.types import Filter

# A filter takes 13 bytes per memory; an agent uses one or two scopes, a server dozens. The minimum
# holds in large stores, where loading one takes seconds.
FILTERS_BYTES = 8 * MIB
MIN_CACHED_FILTERS = 64

Keys = NDArray[np.int64]
_NO_KEYS: Keys = np.zeros(0, np.int64)


def filter_parameters(filter: Filter, moment: str | None = None) -> dict[str, Any]:
    """Return the predicate's parameters; `moment` applies without an `as_of`."""
    return {
        "moment": moment if filter.as_of is None else None,
        "scope": filter.scope,
        "categories": as_json(filter.categories) if filter.categories else None,
        "tags": as_json(sorted(set(filter.tags))) if filter.tags else None,
        "states": as_json(filter.states),
        "source": filter.source,
        "created_after": filter.created_after,
        "created_before": filter.created_before,
        "as_of": filter.as_of,
        "viewer": filter.viewer,
    }


class _Entry(msgspec.Struct, frozen=True):
    sequence: int
    mask: NDArray[np.bool_]
    lengths: NDArray[np.float32]
    importances: NDArray[np.float64]
    count: int
    mean_length: float


class Visibility:
    def __init__(self, database: StoreDatabase, changes: Changes) -> None:
        self._database = database
        self._changes = changes
        self._validity = Validity(database, changes)
        self._entries: BoundedCache[Filter, _Entry] = BoundedCache(FILTERS_BYTES)
        self._lock = threading.Lock()

    def of(self, filter: Filter) -> VisibleMemories:
        return self._changes.kept((self, filter), lambda: self._now(filter))

    def _now(self, filter: Filter) -> VisibleMemories:
        with self._lock:
            entry = self._as_of(filter) or self._fresh(filter)
            hidden = self._invalid_keys(entry.mask) if filter.as_of is None else ()
            if not len(hidden):
                return _visible(entry, entry.mask, entry.count)
            mask = entry.mask.copy()
            mask[hidden] = False
            return _visible(entry, mask, entry.count - len(hidden))

    def _fresh(self, filter: Filter) -> _Entry:
        sequence = self._changes.last()
        known = self._entries.get(filter)
        base = known or self._from_file(filter)
        entry = (base and self._caught_up(filter, base)) or self._load(filter, sequence)
        if entry is not known:
            self._entries.most_bytes = max(FILTERS_BYTES, MIN_CACHED_FILTERS * _bytes(entry))
            self._entries.put(filter, entry)
        return entry

    def _as_of(self, filter: Filter) -> _Entry | None:
        """Answer from the index file, or return None.

        Most memories are valid from their creation on; `Validity` knows the few others.
        """
        whenever = msgspec.structs.replace(filter, as_of=None)
        if (
            filter.as_of is None
            or not covers_filter(whenever)
            or self._database.mapped_index() is None
        ):
            return None
        shown, written = (
            self._fresh(whenever),
            self._fresh(_written_by(whenever, filter.as_of)).mask,
        )
        mask = np.zeros(len(shown.mask), bool)
        mask[: len(written)] = written[: len(mask)]
        for key, (start, end) in self._validity.bounds().items():
            if key < len(mask) and shown.mask[key]:
                has_begun = mask[key] if start is None else start <= filter.as_of
                mask[key] = has_begun and (end is None or end > filter.as_of)
        return _counted(shown.sequence, mask, shown.lengths, shown.importances)

    def _load(self, filter: Filter, sequence: int) -> _Entry:
        with self._database.errors():
            sql = self._database.sql("visible")["keys"]
            rows = self._database.read().execute(sql, filter_parameters(filter)).fetchall()
        shown = [tuple(row) for row in rows]
        return _entry(sequence, np.zeros(1, bool), np.zeros(1, np.float32), np.zeros(1), shown)

    def _from_file(self, filter: Filter) -> _Entry | None:
        index = self._database.mapped_index() if covers_filter(filter) else None
        shown = index and index.shown(filter)
        return _entry(index.sequence, *shown, []) if index and shown else None

    def _caught_up(self, filter: Filter, entry: _Entry) -> _Entry | None:
        changed = self._changes.since(entry.sequence)
        if not changed:
            return None if changed is None else entry
        keys = {key for _, key in changed}
        parameters = {**filter_parameters(filter), "keys": as_json(keys)}
        with self._database.errors():
            sql = self._database.sql("visible")["changed_keys"]
            rows = self._database.read().execute(sql, parameters).fetchall()
        mask = entry.mask.copy()  # another thread's search may still read the old one
        mask[[key for key in keys if key < len(mask)]] = False
        return _entry(
            changed[-1][0], mask, entry.lengths, entry.importances, [tuple(row) for row in rows]
        )

    def _invalid_keys(self, mask: NDArray[np.bool_]) -> Keys:
        keys = self._validity.invalid_keys(now())
        keys = keys[: np.searchsorted(keys, len(mask))]
        return keys[mask[keys]]


def _entry(
    sequence: int,
    mask: NDArray[np.bool_],
    lengths: NDArray[np.float32],
    importances: NDArray[np.float64],
    shown: list[tuple[int, int, float]],
) -> _Entry:
    if shown:
        given, terms, important = zip(*shown, strict=True)
        keys = np.array(given, np.int64)
        size = int(keys.max()) + 2  # ends with False, for the key -1 of removed rows
        if size > len(mask):
            more = max(size, len(mask) * 3 // 2) - len(mask)
            mask = np.concatenate([mask, np.zeros(more, bool)])
            lengths = np.concatenate([lengths, np.zeros(more, np.float32)])
            importances = np.concatenate([importances, np.zeros(more)])
        mask[keys] = True
        lengths[keys] = terms
        importances[keys] = important
    return _counted(sequence, mask, lengths, importances)


def _counted(
    sequence: int,
    mask: NDArray[np.bool_],
    lengths: NDArray[np.float32],
    importances: NDArray[np.float64],
) -> _Entry:
    count = int(mask.sum())
    return _Entry(
        sequence, mask, lengths, importances, count, float(lengths[mask].mean()) if count else 0.0
    )


def _visible(entry: _Entry, mask: NDArray[np.bool_], count: int) -> VisibleMemories:
    return VisibleMemories(mask, entry.lengths, entry.importances, count, entry.mean_length)


def _bytes(entry: _Entry) -> int:
    return entry.mask.nbytes + entry.lengths.nbytes + entry.importances.nbytes


def _written_by(filter: Filter, moment: str) -> Filter:
    after = next_stamp(moment)
    before = min((bound for bound in (filter.created_before, after) if bound), default=None)
    return msgspec.structs.replace(filter, created_before=before)


class _Sorted(msgspec.Struct, frozen=True):
    moments: list[str]
    keys: Keys


class _Bounds(msgspec.Struct, frozen=True):
    sequence: int
    by_key: dict[int, tuple[str | None, str | None]]
    starts: _Sorted
    ends: _Sorted


class Validity:
    """Memories outside their validity; few have bounds, so all are kept, sorted."""

    def __init__(self, database: Database, changes: Changes) -> None:
        self._database = database
        self._changes = changes
        self._lock = threading.Lock()
        self._bounds: _Bounds | None = None

    def invalid_keys(self, moment: str) -> Keys:
        with self._lock:
            bounds = self._bounds = self._fresh()
        if not bounds.by_key:
            return _NO_KEYS
        starts, ends = bounds.starts, bounds.ends
        not_yet = starts.keys[bisect_right(starts.moments, moment) :]
        no_longer = ends.keys[: bisect_right(ends.moments, moment)]
        # np.union1d would load masked arrays, which takes longer than the rest of a recall.
        either = np.sort(np.concatenate([not_yet, no_longer]))
        return either[np.diff(either, prepend=-1) > 0]

    def bounds(self) -> Mapping[int, tuple[str | None, str | None]]:
        """Return (start, end) by key of the memories that have either."""
        with self._lock:
            self._bounds = self._fresh()
            return self._bounds.by_key

    def _fresh(self) -> _Bounds:
        known, last = self._bounds, self._changes.last()
        changed = self._changes.since(known.sequence) if known else None
        if known is None or changed is None:
            return _bounds(last, self._read("bounds"))
        if not changed:
            return known
        keys = {key for _, key in changed}
        rows = self._read("bounds_of", keys)
        kept = {key: bounds for key, bounds in known.by_key.items() if key not in keys}
        if not rows and len(kept) == len(known.by_key):
            return msgspec.structs.replace(known, sequence=changed[-1][0])
        return _bounds(changed[-1][0], rows, kept)

    def _read(self, name: str, keys: Iterable[int] = ()) -> list[Row]:
        with self._database.errors():
            sql = self._database.sql("visible")[name]
            return self._database.read().execute(sql, {"keys": as_json(keys)}).fetchall()


def _bounds(
    sequence: int, rows: Iterable[Row], kept: dict[int, tuple[str | None, str | None]] | None = None
) -> _Bounds:
    by_key = {**(kept or {}), **{row[0]: (row[1], row[2]) for row in rows}}
    starts = [(start, key) for key, (start, _) in by_key.items() if start is not None]
    ends = [(end, key) for key, (_, end) in by_key.items() if end is not None]
    return _Bounds(sequence, by_key, _sorted(starts), _sorted(ends))


def _sorted(pairs: list[tuple[str, int]]) -> _Sorted:
    pairs.sort()
    return _Sorted([moment for moment, _ in pairs], np.array([key for _, key in pairs], np.int64))
