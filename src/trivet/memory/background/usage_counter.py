"""Counts what recall shows, in memory, and writes it down now and then: a recall never waits for it.

What was not yet written when a process is killed is not counted, which nobody misses.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from trivet.errors import StoreError

if TYPE_CHECKING:
    from trivet.store.relational.usage import UsageCounts


class Tally:
    def __init__(self, counts: UsageCounts, enabled: bool = True) -> None:
        self._counts = counts
        self._enabled = enabled
        self._shown: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.lost = 0  # showings that could not be written down
        self.last_error: str | None = None

    def note(self, ids: Iterable[str]) -> None:
        if self._enabled:
            with self._lock:
                self._shown.update(ids)

    def write_down(self) -> None:
        """A store that cannot be written, such as one on a read-only disk, still answers: its counts are given up."""
        with self._lock:
            shown, self._shown = self._shown, Counter()
        if not shown:
            return
        try:
            self._counts.note(shown)
        except StoreError as error:
            self.lost += shown.total()
            self.last_error = str(error)
