"""Which memories are out of their time now. Few have bounds, so all of them are kept in memory, sorted."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterable

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.store.relational.changes import Changes
from trivet.store.relational.database import Database, Row
from trivet.store.relational.rows import as_json

Keys = NDArray[np.int64]


class _Sorted(msgspec.Struct, frozen=True):
    """Moments in order, and whose they are."""

    moments: list[str]
    keys: Keys


class _Bounds(msgspec.Struct, frozen=True):
    sequence: int
    by_key: dict[int, tuple[str | None, str | None]]
    starts: _Sorted
    ends: _Sorted


class Validity:
    def __init__(self, database: Database, changes: Changes) -> None:
        self._database = database
        self._changes = changes
        self._lock = threading.Lock()
        self._bounds: _Bounds | None = None

    def out_of_time(self, moment: str) -> Keys:
        """The keys of memories that are not valid yet, or no longer, rising."""
        with self._lock:
            bounds = self._bounds = self._fresh()
        starts, ends = bounds.starts, bounds.ends
        not_yet = starts.keys[bisect_right(starts.moments, moment) :]
        no_longer = ends.keys[: bisect_right(ends.moments, moment)]
        return np.union1d(not_yet, no_longer)

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
