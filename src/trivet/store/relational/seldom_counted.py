"""Counts of many rows, made anew only a part of the time: every answer tells what waits, and that may be a lot."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

# Fewer rows than this are counted whenever they are asked for: it takes less than a millisecond.
MANY = 10_000
# More are counted again after so many times as long as it took.
PAUSES = 50

T = TypeVar("T")


class SeldomCounted(Generic[T]):
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: dict[Hashable, tuple[T, float]] = {}  # and until when it holds

    def of(self, name: Hashable, count: Callable[[], T], rows: Callable[[T], int]) -> T:
        """What `count` says, or said lately; `rows` is how many it had to count."""
        began = self._clock()
        known = self._known.get(name)
        if known is not None and began < known[1]:
            return known[0]
        counted, ended = count(), self._clock()
        if rows(counted) < MANY:
            self._known.pop(name, None)
        else:
            self._known[name] = counted, ended + PAUSES * (ended - began)
        return counted
