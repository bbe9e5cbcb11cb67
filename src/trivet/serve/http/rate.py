"""How often somebody may ask: a bucket of tokens each, which fills again with time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from trivet.bounded_cache import MIB, BoundedCache

# For the buckets of some 20,000 keys. One that is forgotten is full again.
BUCKETS_BYTES = 8 * MIB


class Rate:
    """Used by the event loop's thread alone, so it needs no lock."""

    def __init__(self, per_minute: int, burst: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_minute / 60
        self._burst = float(burst)
        self._clock = clock
        self._buckets: BoundedCache[str, tuple[float, float]] = BoundedCache(BUCKETS_BYTES)

    def take(self, name: str) -> int:
        """Takes a token. 0, or in how many seconds there will be one."""
        tokens, wait = self._tokens(name), self.wait(name)
        self._buckets.put(name, (tokens if wait else tokens - 1, self._clock()))
        return wait

    def wait(self, name: str) -> int:
        """As `take`, without taking one."""
        tokens = self._tokens(name)
        return 0 if tokens >= 1 else max(1, math.ceil((1 - tokens) / self._per_second))

    def _tokens(self, name: str) -> float:
        now = self._clock()
        tokens, at = self._buckets.get(name) or (self._burst, now)
        return min(self._burst, tokens + (now - at) * self._per_second)
