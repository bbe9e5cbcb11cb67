"""The record of changes, and what changed since a cache last looked, whichever process changed it.

All caches of a store follow one log in memory. It is brought up to date before every look, and within `moment` once:
one question to the database then serves every cache that a recall goes through.
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

# Caches that lag further behind than this reload whole; that is rare and costs a fraction of a second.
MAX_CHANGES_KEPT = 20_000
# After a failover a database may have lost its latest changes, and gives their numbers again. Caches then start a new
# age, by which their numbers are offset, so that an old number is never taken for a new one.
GENERATION_SIZE = 1 << 40
# The key of no memory: what changed are the models.
MODELS_KEY = 0

T = TypeVar("T")


class ReadView(msgspec.Struct, frozen=True):
    """A recall's view of a store: what is found out about it holds until its end.

    `bound` is the latest change that the caches may take in. Later ones, which another thread may have read meanwhile,
    must wait, since rows that are read within the moment may be older. `kept` is for what several parts ask for.
    """

    bound: int
    kept: dict[Hashable, Any]


_views: ContextVar[Mapping[Changes, ReadView]] = ContextVar(
    "moments of stores", default=MappingProxyType({})
)


class Changes:
    """Follows the change table. Costs a few microseconds in the embedded store when nothing happened."""

    def __init__(self, database: StoreDatabase) -> None:
        self._database = database
        self._sql = database.sql("memories")
        self._lock = threading.Lock()
        self._generation: int | None = None
        self._log: list[tuple[int, int]] = []
        self._start = 0  # the log holds every change after this one

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Within it the caches look at the database once, at the beginning."""
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
        """The latest change that may be taken in within this moment; None outside one."""
        moment = _views.get().get(self)
        return None if moment is None else moment.bound

    def kept(self, name: Hashable, make: Callable[[], T]) -> T:
        """What `make` gives: within a moment it is asked once for each name."""
        moment = _views.get().get(self)
        if moment is None:
            return make()
        if name not in moment.kept:
            moment.kept[name] = make()
        found: T = moment.kept[name]
        return found

    def last(self) -> int:
        """The latest change that caches may know."""
        bound = self.bound
        if bound is not None:
            return bound
        self._follow()
        with self._lock:
            return self._known

    def since(self, sequence: int) -> list[tuple[int, int]] | None:
        """(sequence, key) of each later change, oldest first; None when the record does not reach back so far.

        A cache that is ahead of this moment gets an empty list.
        """
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
        """Reads the record once, without the lock. False if the age changed meanwhile: then it must be read again."""
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
            # From the change on that an index file was made at, so that caches can take in what came since.
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
        if (
            rows[0][0] != self._known % GENERATION_SIZE + 1
        ):  # the record was trimmed beyond what is known
            self._restart(generation, rows[-1][0])
            return
        self._log += [(generation * GENERATION_SIZE + sequence, key) for sequence, key in rows]
        if len(self._log) > 2 * MAX_CHANGES_KEPT:
            self._start += MAX_CHANGES_KEPT
            self._log = self._log[MAX_CHANGES_KEPT:]


# With more changes since than this, everything is loaded from the database: to take them in would take as long.
MAX_CHANGES_APPLIED = 2_000
