"""Counts in memory what recall shows, and writes the counts now and then: a recall never waits for it.

Counts that were not written when a process is killed are lost, which does no harm.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from trivet.errors import StoreError

if TYPE_CHECKING:
    from trivet.store.relational.usage import UsageCounts


class UsageCounter:
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
        """Writes the counts. A store that cannot be written, as on a read-only disk, still answers; counts are lost."""
        with self._lock:
            shown, self._shown = self._shown, Counter()
        if not shown:
            return
        try:
            self._counts.note(shown)
        except StoreError as error:
            self.lost += shown.total()
            self.last_error = str(error)
