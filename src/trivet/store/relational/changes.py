"""The change log: which memories changed since, in any process.

All caches share one log, refreshed once per `moment`, so that one query serves a recall.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import MappingProxyType
from typing import Any, TypeVar

import msgspec

from trivet.store.relational.database import StoreDatabase

# A cache further behind than this reloads, which is rare and takes a fraction of a second.
MAX_CHANGES_KEPT = 20_000
# After a failover the numbers of lost changes return; each generation offsets them by this.
GENERATION_SIZE = 1 << 40
# No memory's key: the models changed.
MODELS_KEY = 0

T = TypeVar("T")


class ReadView(msgspec.Struct, frozen=True):
    """One recall's view of a store; changes after `bound` are not applied."""

    bound: int
    kept: dict[Hashable, Any]


_views: ContextVar[Mapping[Changes, ReadView]] = ContextVar(
    "moments of stores", default=MappingProxyType({})
)


class Changes:
    def __init__(self, database: StoreDatabase) -> None:
        self._database = database
        self._sql = database.sql("memories")
        self._lock = threading.Lock()
        self._generation: int | None = None
        self._log: list[tuple[int, int]] = []
        self._start = 0  # number of the change before the first in the log

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Let caches check the database only once."""
        if self in _views.get():
            yield
            return
        with self._database.moment(self._known % GENERATION_SIZE):
            token = _views.set({**_views.get(), self: ReadView(self.last(), {})})
            try:
                yield
            finally:
                _views.reset(token)

    @property
    def bound(self) -> int | None:
        """The latest change to apply within this moment; None outside one."""
        moment = _views.get().get(self)
        return None if moment is None else moment.bound

    def kept(self, name: Hashable, make: Callable[[], T]) -> T:
        """Return `make()`, called once per name within a moment."""
        moment = _views.get().get(self)
        if moment is None:
            return make()
        if name not in moment.kept:
            moment.kept[name] = make()
        found: T = moment.kept[name]
        return found

    def last(self) -> int:
        bound = self.bound
        if bound is not None:
            return bound
        self._follow()
        with self._lock:
            return self._known

    def since(self, sequence: int) -> list[tuple[int, int]] | None:
        """Return later (sequence, key) pairs, oldest first; None if the log starts later."""
        last = self.last()
        with self._lock:
            if not self._start <= sequence <= self._known:
                return None
            return self._log[sequence - self._start : max(sequence, last) - self._start]

    @property
    def _known(self) -> int:
        return self._start + len(self._log)

    def _follow(self) -> None:
        with self._database.errors():
            while not self._read_changes():
                pass

    def _read_changes(self) -> bool:
        """Return False if the generation changed meanwhile."""
        generation = self._database.generation
        with self._lock:
            known = self._known if generation == self._generation else None
        rows = self._read(known)
        if self._database.generation != generation:
            return False
        with self._lock:
            if known is None:
                self._restart(generation, rows[0][0])
                self._apply_changes(generation, rows[1:])
            elif self._generation == generation:
                self._apply_changes(
                    generation, [row for row in rows if row[0] > self._known % GENERATION_SIZE]
                )
        return True

    def _read(self, known: int | None) -> list[tuple[int, int]]:
        connection = self._database.read()
        if known is None:
            row = connection.execute(self._sql["last_change"]).fetchone()
            last = int(row[0]) if row else 0
            index = self._database.mapped_index()
            # Caches can then apply what came after the index file.
            start = (
                index.sequence
                if index and 0 <= last - index.sequence <= MAX_CHANGES_APPLIED
                else last
            )
            return [(start, MODELS_KEY), *(self._after(start) if start < last else ())]
        return self._after(known % GENERATION_SIZE)

    def _after(self, sequence: int) -> list[tuple[int, int]]:
        rows = (
            self._database.read()
            .execute(self._sql["changes_since"], {"sequence": sequence})
            .fetchall()
        )
        return [(row[0], row[1]) for row in rows]

    def _restart(self, generation: int, last: int) -> None:
        self._log, self._start, self._generation = (
            [],
            generation * GENERATION_SIZE + last,
            generation,
        )

    def _apply_changes(self, generation: int, rows: list[tuple[int, int]]) -> None:
        if not rows:
            return
        # The record was trimmed beyond what is known.
        if rows[0][0] != self._known % GENERATION_SIZE + 1:
            self._restart(generation, rows[-1][0])
            return
        self._log += [(generation * GENERATION_SIZE + sequence, key) for sequence, key in rows]
        if len(self._log) > 2 * MAX_CHANGES_KEPT:
            self._start += MAX_CHANGES_KEPT
            self._log = self._log[MAX_CHANGES_KEPT:]


# Above this, loading everything is as fast.
MAX_CHANGES_APPLIED = 2_000
