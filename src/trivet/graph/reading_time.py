"""How long one memory may be read. What stands behind the place where its time ends is not read."""

from __future__ import annotations

import math
import time


class ReadingTime:
    """Time of the processor in the reader's own thread: a busy machine cuts nothing short."""

    def __init__(self, seconds: float = math.inf) -> None:
        self._end = time.thread_time() + seconds
        self._safe_until = time.perf_counter() + seconds
        self.is_over = False

    def is_left(self) -> bool:
        """Asked between two pieces of a text; once it is over it stays so.

        A thread works no longer than time goes by, and to ask for that is cheaper.
        """
        if not self.is_over and time.perf_counter() >= self._safe_until:
            self.is_over = time.thread_time() >= self._end
        return not self.is_over
