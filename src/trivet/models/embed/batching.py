"""Batches concurrent queries: while one batch runs, queries that arrive wait for the next."""

from __future__ import annotations

import queue
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary, finalize, ref

if TYPE_CHECKING:
    from trivet.models.embed.base import Embedder, Vectors

# Bounds how long the first query waits for its batch.
MAX_BATCH = 32
# Longer than a thread takes to wake up.
WAKING_SECONDS = 0.005
STOPPING_SECONDS = 0.5


class _PendingQuery:
    """A query and its vector; None if its batch failed and `alone` must run."""

    def __init__(
        self, text: str, alone: Callable[[], Vectors], made: Future[Vectors] | None = None
    ) -> None:
        self.text = text
        self.alone = alone
        self.made = made
        self.woken = threading.Event()
        self.is_leader = False
        self.vector: Vectors | None = None


class BatchedQueries:
    """The queries of one embedder, held weakly; `sizes` counts batches by size."""

    def __init__(self, embedder: Embedder, sizes: Counter[int] | None = None) -> None:
        self._embedder_ref = ref(embedder)
        self._guard = threading.Lock()
        self._waiting: list[_PendingQuery] = []
        self._running = False
        self._thread = _Thread()
        self.sizes: Counter[int] = Counter() if sizes is None else sizes

    @property
    def _embedder(self) -> Embedder:
        embedder = self._embedder_ref()
        assert embedder is not None, "the caller holds it"
        return embedder

    def begin(self, text: str) -> Future[Vectors] | None:
        """Start embedding in the background; None if the embedder cannot.

        Wait until the model runs: otherwise the thread would get the interpreter only when the
        caller's work is done.
        """
        begun: Callable[[str], Callable[[], Vectors]] | None = getattr(
            self._embedder, "begun", None
        )
        if begun is None:
            return None
        made: Future[Vectors] = Future()
        with self._guard:
            if self._running:
                self._waiting.append(
                    _PendingQuery(text, partial(self._embedder.embed_query, text), made)
                )
                return made
            self._running = True
        try:
            pending = _PendingQuery(text, begun(text), made)
        except BaseException:  # an interruption must not leave others waiting
            self._hand_over()
            raise
        self._thread.put(made, partial(self._run_batch, pending)).wait(WAKING_SECONDS)
        return made

    def embed_query(self, text: str) -> Vectors:
        pending = _PendingQuery(text, partial(self._embedder.embed_query, text))
        with self._guard:
            if self._running:
                self._waiting.append(pending)
            else:
                self._running = pending.is_leader = True
        if not pending.is_leader:
            pending.woken.wait()
        if pending.is_leader:
            return self._run_batch(pending)
        # If a batch fails, each query runs alone.
        return pending.vector if pending.vector is not None else pending.alone()

    def _run_batch(self, pending: _PendingQuery) -> Vectors:
        with self._guard:
            others = self._waiting[: MAX_BATCH - 1]
            self._waiting = self._waiting[MAX_BATCH - 1 :]
            self.sizes[1 + len(others)] += 1
        try:
            return self._together(pending, others) if others else pending.alone()
        finally:
            self._hand_over()
            for other in others:
                self._deliver(other)

    def _together(self, pending: _PendingQuery, others: list[_PendingQuery]) -> Vectors:
        try:
            vectors = self._embedder.embed_queries(
                [pending.text, *(other.text for other in others)]
            )
        except Exception:  # noqa: BLE001 - retried alone, which reports it
            return pending.alone()
        for other, vector in zip(others, vectors[1:], strict=True):
            other.vector = vector
        first: Vectors = vectors[0]
        return first

    def _hand_over(self) -> None:
        with self._guard:
            if not self._waiting:
                self._running = False
                return
            next_query = self._waiting.pop(0)
            next_query.is_leader = True
        if next_query.made is not None:
            self._thread.put(next_query.made, partial(self._run_batch, next_query))
        else:
            next_query.woken.set()

    def _deliver(self, other: _PendingQuery) -> None:
        if other.made is None:
            other.woken.set()
        elif other.vector is not None:
            other.made.set_result(other.vector)
        else:
            self._thread.put(other.made, other.alone)


class _Task(NamedTuple):
    made: Future[Vectors]
    begun: threading.Event
    work: Callable[[], Vectors]


_Tasks = queue.SimpleQueue[_Task | None]


class _Thread:
    def __init__(self) -> None:
        self._tasks: _Tasks = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._running = False

    def put(self, made: Future[Vectors], work: Callable[[], Vectors]) -> threading.Event:
        """Queue work; the returned event is set when it starts."""
        with self._guard:
            if not self._running:
                thread = threading.Thread(
                    target=_work, args=(self._tasks,), name="trivet-query", daemon=True
                )
                thread.start()
                finalize(self, _stop, self._tasks, thread)  # also at process exit
                self._running = True
        task = _Task(made, threading.Event(), work)
        self._tasks.put(task)
        return task.begun


def _stop(tasks: _Tasks, thread: threading.Thread) -> None:
    """Wait briefly for a running model: killing a thread in it can crash the process."""
    tasks.put(None)
    if thread is not threading.current_thread():
        thread.join(STOPPING_SECONDS)


def _work(tasks: _Tasks) -> None:
    while (task := tasks.get()) is not None:
        task.begun.set()
        try:
            task.made.set_result(task.work())
        except Exception as error:  # noqa: BLE001 - raised in the caller
            task.made.set_exception(error)
        del task  # free the vector while waiting


_queues: WeakKeyDictionary[Embedder, BatchedQueries] = WeakKeyDictionary()
_queues_lock = threading.Lock()


def batched(embedder: Embedder) -> BatchedQueries:
    with _queues_lock:
        found = _queues.get(embedder)
        if found is None:
            found = _queues[embedder] = BatchedQueries(embedder)
        return found


def replace_hung_batch(embedder: Embedder) -> None:
    """Use a new queue, so that new queries do not wait for a hung batch."""
    with _queues_lock:
        hung = _queues.get(embedder)
        if hung is not None:
            _queues[embedder] = BatchedQueries(embedder, hung.sizes)


def batch_sizes() -> Counter[int]:
    total: Counter[int] = Counter()
    with _queues_lock:
        for queries in _queues.values():
            total.update(dict(queries.sizes))  # a copy, because other threads update it
    return total
