"""Reading memories for their concepts: takes what waits, reads it by the rules, stores what was found."""

from __future__ import annotations

import threading

from trivet.graph.extract import EXTRACTION_VERSION, extract
from trivet.store.base import Store

# Read and stored at a time, each batch one transaction of some tens of milliseconds.
READ_AT_ONCE = 200
LEASE_SECONDS = 60.0


class Extraction:
    """The rules need no model and no network, and cannot fail: what they read is in the graph."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def drain(self, stop: threading.Event) -> int:
        """Reads everything that waits, and returns how many memories that were."""
        done = 0
        while not stop.is_set():
            readings = self._store.graph.lease("rules", READ_AT_ONCE, LEASE_SECONDS)
            if not readings:
                break
            found = [(reading, extract(reading.title, reading.content, reading.tags)) for reading in readings]
            self._store.graph.finish_mentions(found)
            done += len(readings)
        return done
