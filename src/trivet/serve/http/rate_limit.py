"""How often a key may ask: a bucket of tokens that fills up evenly, one token a request."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable

# A bucket that was full may be forgotten; this many are remembered however empty.
MOST_BUCKETS = 100_000


class Rate:
    """Used by the event loop's thread alone, so it needs no lock."""

    def __init__(self, per_minute: int, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_minute / 60
        self._burst = float(burst)
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, name: str) -> int:
        """Takes a token. 0, or in how many seconds there will be one."""
        now = self._clock()
        tokens, at = self._buckets.get(name, (self._burst, now))
        tokens = min(self._burst, tokens + (now - at) * self._per_second)
        wait = 0 if tokens >= 1 else max(1, math.ceil((1 - tokens) / self._per_second))
        self._buckets[name] = (tokens if wait else tokens - 1, now)
        self._buckets.move_to_end(name)
        if len(self._buckets) > MOST_BUCKETS:
            self._buckets.popitem(last=False)
        return wait
