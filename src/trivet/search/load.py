"""How many recalls are at work in this process: where others wait for a core, what is optional is left out."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from trivet.cores import cores

# So often what waits for room looks whether there is some.
LOOKS_SECONDS = 0.1
# Whoever recalled within so long is likely to do so again.
LATELY_SECONDS = 1.0
# A recall takes a few milliseconds; where there is always one at work, work that can wait goes on after this long.
PASSING_SECONDS = 0.02


class Load:
    """Counts the recalls of all who share a process. There is room while each of them can have a core.

    Where several processes are one server, each has its part of the cores, and room for one at least.
    """

    def __init__(self, processes: int = 1) -> None:
        self.room = max(1, cores() // processes)
        self.at_work = 0
        self.gave_way = 0  # how often something was left out, since the process began
        self._ended = -math.inf
        self._lock = threading.Condition()

    @contextmanager
    def recall(self) -> Iterator[None]:
        """One more for as long as this lasts."""
        with self._lock:
            self.at_work += 1
        try:
            yield
        finally:
            with self._lock:
                self.at_work -= 1
                self._ended = time.monotonic()
                self._lock.notify_all()

    def lately(self) -> bool:
        """Whether somebody recalls, or did a moment ago."""
        return self.at_work > 0 or time.monotonic() - self._ended < LATELY_SECONDS

    def let_pass(self) -> None:
        """Until nobody recalls, for work that is done piece by piece between recalls; not for ever."""
        with self._lock:
            self._lock.wait_for(lambda: not self.at_work, PASSING_SECONDS)

    def wait_for_room(self, stop: threading.Event, seconds: float) -> None:
        """For work that nobody waits for: until there is room, it is to stop, or so long."""
        until = time.monotonic() + seconds
        while self.at_work > self.room and time.monotonic() < until and not stop.wait(LOOKS_SECONDS):
            pass

    def gives_way(self) -> str | None:
        """Why what is optional must be left out now; None while there is room for it. A refusal is counted.

        How many are at work is not said: they may be other tenants'.
        """
        with self._lock:
            if self.at_work <= self.room:
                return None
            self.gave_way += 1
            return "left out, because more recalls are at work than there are cores"
