"""The background worker, a runner for long repairs, and counts of what recalls show."""

from __future__ import annotations

import math
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Generic, Literal, TypeVar

from trivet.errors import EmbedderError, StoreError, TrivetError
from trivet.memory.worker.embed_pending import PendingEmbedder, VectorsOf
from trivet.memory.worker.extraction import Extraction
from trivet.search.concurrency import RecallLoad
from trivet.search.embedding import Embedding
from trivet.store.records import Model
from trivet.types import Mending, Progress

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from trivet.memory.worker.triples import Triples
    from trivet.models.embed.base import Embedder
    from trivet.store import Store
    from trivet.store.relational.tables.ledgers import UsageCounts


# Twice PASSAGES_AT_ONCE, so that reading finishes first.
READ_WHILE_EMBEDDING = 64
# The rules read a text of this length in two milliseconds.
MAX_READ_ON_SAVE_CHARACTERS = 4_000
# Seconds between looks for jobs of other processes.
POLL_SECONDS = 5.0
# Seconds between attempts to erase purged data, which needs a vacuum or an idle log.
ERASE_PAUSE_SECONDS = 30.0
# Between renewals of the index file: at least this long, and this many times its duration.
INDEX_PAUSE_SECONDS = 10.0
INDEX_PAUSE_FACTOR = 20
# When competing with its process, the worker gets a tenth of the CPU.
NICE_STEP, MAX_NICE = 10, 19


class Worker:
    """A worker that drains the queues on demand or in the background."""

    def __init__(
        self,
        store: Store,
        embedding: Embedding,
        triples: Triples | None = None,
        usage: UsageCounter | None = None,
        changes: Literal["read", "words", "off"] = "read",
        load: RecallLoad | None = None,
    ) -> None:
        self._load = load or RecallLoad()
        self._changes = changes
        self._usage = usage
        self._store = store
        self._embedding = embedding
        self._extraction = Extraction(store, triples)
        self._woken = threading.Event()
        self._wakes = [self._woken]
        self._stop = threading.Event()
        self._threads: list[tuple[threading.Thread, float | None]] = []
        self._draining = threading.Lock()
        self._error: str | None = None
        self._triples_error: str | None = None
        self._erase_after = 0.0
        self._renew_after = 0.0
        self._patient = False
        self.errand: BackgroundTask[Mending] = BackgroundTask(self.note)

    def be_patient(self) -> None:
        """Remove the time limits, for measurements."""
        self._patient = True
        self._extraction.max_seconds_per_memory = math.inf

    @property
    def last_error(self) -> str | None:
        """Return the last error of the embedder, else of the language model."""
        triples = self._extraction.triples
        return self._error or self._triples_error or (triples.last_error if triples else None)

    def start(self) -> None:
        # A remote embedder may hang. Its jobs are stored, so closing does not wait.
        patience = None if self._embedding.local else 1.0
        self._start("trivet-worker", self._drain_in_background, patience, self._woken)
        if self._extraction.triples is not None:
            wake = threading.Event()
            self._wakes.append(wake)
            self._start("trivet-triples", self._read_in_background, 1.0, wake)

    @property
    def runs(self) -> bool:
        return bool(self._threads)

    def wake(self) -> None:
        for event in self._wakes:
            event.set()

    def saved(self, characters: int) -> None:
        """Extract concepts from a short text at once, and leave the rest to the worker."""
        if characters <= MAX_READ_ON_SAVE_CHARACTERS:
            try:
                self._extraction.read_saved()
            except TrivetError as error:  # the memory is stored, and the worker tries again
                self._error = str(error)
        self.wake()

    def note(self, trouble: str | None) -> None:
        if trouble is not None:
            self._error = trouble

    def stop(self) -> None:
        self._stop.set()
        self.wake()
        self.errand.wait(CLOSE_WAIT_SECONDS)
        for thread, patience in self._threads:
            thread.join(timeout=patience)
        self._threads.clear()
        if self._extraction.triples is not None:
            self._extraction.triples.let_go()

    @property
    def read_in_part(self) -> int:
        """Count memories that were only partly read for lack of time."""
        return self._extraction.read_in_part

    @property
    def triples(self) -> Triples | None:
        return self._extraction.triples

    def read_by_rules(self) -> int:
        """Read all that waits, even while an embedder blocks another thread."""
        return self._extraction.drain(self._stop)

    def read_triples(self) -> int:
        if self._extraction.triples is None:
            return 0
        self._extraction.triples.wake()
        return self._extraction.read_pending_triples(self._stop)

    def drain(self, progress: Progress | None = None, insists: bool = True) -> int:
        """Embed what is due, read it by the rules, and return the number embedded.

        With `insists`, ask a paused endpoint again.
        """
        with self._draining:
            if not self._embedding.local:  # an endpoint may be slow, so the rules read first
                self._extraction.drain(self._stop)
            done = self._embed(progress, insists)
            self._extraction.drain(self._stop)
            return done

    def _embed(self, progress: Progress | None, insists: bool) -> int:
        try:
            self._embedding.adopt()
        except EmbedderError as error:  # memories wait until a model is adopted
            self._error = str(error)
            return 0
        models = self._embedding.models() if self._embedding.enabled else ()
        done = sum(self._drain_model(model, progress, insists) for model in models)
        self._embedding.promote()
        return done

    def compare(
        self, most: int | None = None, more_urgent: Callable[[], bool] = lambda: False
    ) -> str | None:
        """Compare what saves did not; return the reading model's error."""
        if self._changes == "off":
            return None
        from trivet.memory.supersession.compare import UpdateComparison
        from trivet.memory.supersession.verdict import MAX_READ_SECONDS

        seconds = math.inf if self._patient else MAX_READ_SECONDS
        comparison = UpdateComparison(self._store, self._embedding, self._changes, seconds)
        comparison.drain(self._stop, most, self._load, more_urgent)
        self.note(comparison.trouble)
        return comparison.trouble

    def _drain_model(self, model: Model, progress: Progress | None, insists: bool) -> int:
        try:
            embedder = self._embedding.embedder_of(model)
        except EmbedderError as error:  # one of two models is unavailable; the other continues
            self._error = str(error)
            return 0
        waiting = PendingEmbedder(
            self._store,
            model,
            embedder,
            self._vectors_of(model, embedder),
            self._stop,
            self._report_error,
            progress,
            self._read_some,
        )
        if insists:
            waiting.try_again()
        return waiting.drain()

    def _vectors_of(self, model: Model, embedder: Embedder) -> VectorsOf:
        together = partial(self._embedding.document_vectors, model)
        return partial(self._embed_between_recalls, together) if embedder.local else together

    def _embed_between_recalls(
        self, together: VectorsOf, texts: Sequence[str]
    ) -> NDArray[np.float32]:
        """Embed single texts between recalls; a batch would take every core."""
        if not self._load.lately():
            return together(texts)
        from numpy import concatenate

        return concatenate([self._embed_when_idle(together, text) for text in texts])

    def _embed_when_idle(self, together: VectorsOf, text: str) -> NDArray[np.float32]:
        self._load.yield_to_recalls()
        return together([text])

    def _report_error(self, error: str | None) -> None:
        self._error = error

    def _read_some(self) -> None:
        self._extraction.read_some(READ_WHILE_EMBEDDING, self._stop)

    def _start(
        self, name: str, work: Callable[[], None], patience: float | None, wake: threading.Event
    ) -> None:
        thread = threading.Thread(target=self._run, args=(work, wake), name=name, daemon=True)
        self._threads.append((thread, patience))
        thread.start()

    def _run(self, work: Callable[[], None], wake: threading.Event) -> None:
        _lower_priority()
        while True:
            wake.clear()  # before checking `stop`, so that a stop in between is not missed
            if self._stop.is_set():
                return
            work()
            wake.wait(POLL_SECONDS)

    def _drain_in_background(self) -> None:
        if self._usage is not None:
            self._usage.flush()
        try:
            self._finish_erasing()
            self.drain(insists=False)
            self.compare(more_urgent=self._has_new_work)
            self._renew_index()
        except TrivetError as error:  # shown in every answer's health; the jobs are tried again
            self._error = str(error)

    def _has_new_work(self) -> bool:
        return self._draining.locked() or self._woken.is_set()

    def _finish_erasing(self) -> None:
        """Erase rarely, since purges often come in series."""
        moment = time.monotonic()
        if moment >= self._erase_after and self._store.upkeep.pending_erasure():
            self._erase_after = moment + ERASE_PAUSE_SECONDS
            self._store.upkeep.finish_erasing()

    def _renew_index(self) -> None:
        """Rewrite the file that new processes map, at most a twentieth of the time."""
        started = time.monotonic()
        if started >= self._renew_after:
            self._store.upkeep.renew_index()
            took = time.monotonic() - started
            self._renew_after = started + max(INDEX_PAUSE_SECONDS, INDEX_PAUSE_FACTOR * took)

    def _read_in_background(self) -> None:
        try:
            self._extraction.read_pending_triples(self._stop)
            self._triples_error = None
        except TrivetError as error:
            self._triples_error = str(error)


def _lower_priority() -> None:
    """Lower the CPU priority of this thread and those it starts, which only Linux can."""
    if sys.platform == "linux":
        own = os.getpriority(os.PRIO_PROCESS, 0)
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), min(MAX_NICE, own + NICE_STEP))


# Closing waits this long for a repair. An interrupted one is rolled back or continues as jobs.
CLOSE_WAIT_SECONDS = 10.0

Name = TypeVar("Name")


class BackgroundTask(Generic[Name]):
    """A runner of one task at a time; `tell` gets its error."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._report_error = tell
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._doing: Name | None = None

    @property
    def doing(self) -> Name | None:
        return self._doing

    def start(self, name: Name, work: Callable[[], object]) -> bool:
        """Start the task, or return False if another one runs."""
        with self._lock:
            if self._doing is not None:
                return False
            self._doing = name
            self._thread = threading.Thread(
                target=self._run_task, args=(work,), name="trivet-errand", daemon=True
            )
            self._thread.start()
        return True

    def wait(self, seconds: float | None = None) -> None:
        if self._thread is not None:
            self._thread.join(timeout=seconds)

    def _run_task(self, work: Callable[[], object]) -> None:
        try:
            work()
        except TrivetError as error:
            self._report_error(str(error))
        finally:
            self._doing = None


class UsageCounter:
    def __init__(self, counts: UsageCounts, enabled: bool = True) -> None:
        self._counts = counts
        self._enabled = enabled
        self._shown: Counter[str] = Counter()
        self._lock = threading.Lock()
        self.lost = 0  # showings that could not be written
        self.last_error: str | None = None

    def note(self, ids: Iterable[str]) -> None:
        if self._enabled:
            with self._lock:
                self._shown.update(ids)

    def flush(self) -> None:
        """Write the counts; they are lost if the store is read-only."""
        with self._lock:
            shown, self._shown = self._shown, Counter()
        if not shown:
            return
        try:
            self._counts.note(shown)
        except StoreError as error:
            self.lost += shown.total()
            self.last_error = str(error)
