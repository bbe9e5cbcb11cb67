"""Extraction of concepts by rules, and of triples by an optional language model."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trivet.errors import TrivetError
from trivet.graph.concepts import Mention, TimeBudget
from trivet.secrets.masking import without_placeholders
from trivet.store.records import ExtractionJob

if TYPE_CHECKING:
    from trivet.memory.worker.triples import Triples
    from trivet.store import Store

# Memories per transaction, which takes tens of milliseconds.
READ_BATCH = 200
LEASE_SECONDS = 60.0
# A save reads a queue up to this long itself, in a few milliseconds.
MAX_READ_ON_SAVE = 4
# 32 KiB of ordinary text take 0.02 s, and a batch must fit its lease.
MAX_SECONDS_PER_MEMORY = 0.25
# Such a memory fails again until the rules change.
UNREADABLE_RETRY_SECONDS = 3_000.0


def _mentions(reading: ExtractionJob, time: TimeBudget) -> tuple[Mention, ...]:
    from trivet.graph.extract import extract  # not loaded by processes that only recall

    title = without_placeholders(reading.title) if reading.title else None
    tags = tuple(tag for tag in reading.tags if without_placeholders(tag).strip())
    return extract(title, without_placeholders(reading.content), tags, time)


def _error_location(error: Exception) -> str:
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"


class Extraction:
    def __init__(self, store: Store, triples: Triples | None = None) -> None:
        self._store = store
        self.triples = triples
        self.max_seconds_per_memory = MAX_SECONDS_PER_MEMORY
        # Memories that exceeded their time limit.
        self.read_in_part = 0

    def drain(self, stop: threading.Event) -> int:
        done = 0
        while not stop.is_set():
            few = self.read_some(READ_BATCH, stop)
            if not few:
                break
            done += few
        return done

    def read_saved(self) -> None:
        """Read what was just saved, unless much waits."""
        if not self._store.graph.has_more_than("rules", MAX_READ_ON_SAVE):
            self.read_some(MAX_READ_ON_SAVE, threading.Event())

    def read_some(self, most: int, stop: threading.Event) -> int:
        readings = self._store.graph.lease("rules", most, LEASE_SECONDS)
        if not readings:
            return 0
        try:
            self._store.graph.finish_mentions(self._read_all(readings, stop))
        except TrivetError:  # such as a full disk; the next reader must not wait for the lease
            self._store.graph.release("rules", readings)
            raise
        return len(readings)

    def _read_all(
        self, readings: Sequence[ExtractionJob], stop: threading.Event
    ) -> list[tuple[ExtractionJob, tuple[Mention, ...]]]:
        read: list[tuple[ExtractionJob, tuple[Mention, ...]]] = []
        for place, reading in enumerate(readings):
            if stop.is_set():  # closing waits for one memory, not for the whole batch
                self._store.graph.release("rules", readings[place:])
                break
            read += self._read(reading)
        return read

    def _read(self, reading: ExtractionJob) -> list[tuple[ExtractionJob, tuple[Mention, ...]]]:
        time = TimeBudget(self.max_seconds_per_memory)
        try:
            mentions = _mentions(reading, time)
        except Exception as error:  # noqa: BLE001 - a rule that fails must not stop the others
            # Only type and location: the message may quote the text.
            self._store.graph.fail(
                "rules", [reading], _error_location(error), UNREADABLE_RETRY_SECONDS
            )
            return []
        self.read_in_part += time.is_spent
        return [(reading, mentions)]

    def read_pending_triples(self, stop: threading.Event) -> int:
        """Run the language model after the rules, whose names it needs."""
        if self.triples is None:
            return 0
        self.drain(stop)
        return self.triples.drain(stop)
