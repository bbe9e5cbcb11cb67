"""Queries asked at the same time are embedded together: while one batch runs, those that arrive wait for the next.

Whoever is alone embeds at once and in its own thread, without waiting for company. A recall that has something else to
do first can have its query begun: then a thread of ours runs the model meanwhile.
"""

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

# So that the first of a crowd does not wait for all of it.
MAX_BATCH = 32
# Longer than a thread takes to wake up: after that the caller goes on with its work in any case.
WAKING_SECONDS = 0.005
STOPPING_SECONDS = 0.5


class _PendingQuery:
    """One query, and once its batch has run, its vector; where the batch failed, it has to be asked alone.

    `alone` embeds it by itself. A query that was begun has nobody who waits in its place: it is `made` by our thread.
    """

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
    """The queries of one embedder, from any number of threads. `sizes` counts the batches by their size.

    Who asks has the embedder; here it is not kept, or it would be for ever.
    """

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
        assert embedder is not None, "whoever asks has it"
        return embedder

    def begin(self, text: str) -> Future[Vectors] | None:
        """The vector to come, made in a thread of ours while the caller does something else.

        None where the embedder cannot be begun. Returns once the model runs, outside the interpreter, or once the query
        stands in line: else our thread would wait for the interpreter until the caller had done its work.
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
            asked = _PendingQuery(text, begun(text), made)
        except BaseException:  # an interruption too must not leave the others waiting
            self._hand_over()
            raise
        self._thread.put(made, partial(self._lead, asked)).wait(WAKING_SECONDS)
        return made

    def embed_query(self, text: str) -> Vectors:
        asked = _PendingQuery(text, partial(self._embedder.embed_query, text))
        with self._guard:
            if self._running:
                self._waiting.append(asked)
            else:
                self._running = asked.is_leader = True
        if not asked.is_leader:
            asked.woken.wait()
        if asked.is_leader:
            return self._lead(asked)
        # Its neighbours must not be able to spoil it, nor it them: what failed together is tried apart.
        return asked.vector if asked.vector is not None else asked.alone()

    def _lead(self, asked: _PendingQuery) -> Vectors:
        """Runs the batch of those that wait by now, then hands the lead to the first that came meanwhile."""
        with self._guard:
            others = self._waiting[: MAX_BATCH - 1]
            self._waiting = self._waiting[MAX_BATCH - 1 :]
            self.sizes[1 + len(others)] += 1
        try:
            return self._together(asked, others) if others else asked.alone()
        finally:
            self._hand_over()
            for other in others:
                self._deliver(other)

    def _together(self, asked: _PendingQuery, others: list[_PendingQuery]) -> Vectors:
        try:
            vectors = self._embedder.embed_queries([asked.text, *(other.text for other in others)])
        except Exception:
            return asked.alone()
        for other, vector in zip(others, vectors[1:], strict=True):
            other.vector = vector
        first: Vectors = vectors[0]
        return first

    def _hand_over(self) -> None:
        with self._guard:
            if not self._waiting:
                self._running = False
                return
            following = self._waiting.pop(0)
            following.is_leader = True
        if following.made is not None:
            self._thread.put(following.made, partial(self._lead, following))
        else:
            following.woken.set()

    def _deliver(self, other: _PendingQuery) -> None:
        """That its batch has run."""
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
    """One that never holds up the end of the process, made when it is first needed; it ends with who has it."""

    def __init__(self) -> None:
        self._tasks: _Tasks = queue.SimpleQueue()
        self._guard = threading.Lock()
        self._running = False

    def put(self, made: Future[Vectors], work: Callable[[], Vectors]) -> threading.Event:
        """Has the work done after what was put before; what is returned tells when it has begun."""
        with self._guard:
            if not self._running:
                thread = threading.Thread(
                    target=_work, args=(self._tasks,), name="trivet-query", daemon=True
                )
                thread.start()
                finalize(self, _stop, self._tasks, thread)  # at the end of the process too
                self._running = True
        task = _Task(made, threading.Event(), work)
        self._tasks.put(task)
        return task.begun


def _stop(tasks: _Tasks, thread: threading.Thread) -> None:
    """Waits a moment for a model that is at work: a thread that is cut off within it can take the process down."""
    tasks.put(None)
    if thread is not threading.current_thread():
        thread.join(STOPPING_SECONDS)


def _work(tasks: _Tasks) -> None:
    while (task := tasks.get()) is not None:
        task.begun.set()
        try:
            task.made.set_result(task.work())
        except Exception as error:
            task.made.set_exception(error)
        del task  # and the vector with it, while it waits for the next


_queues: WeakKeyDictionary[Embedder, BatchedQueries] = WeakKeyDictionary()
_queues_lock = threading.Lock()


def batched(embedder: Embedder) -> BatchedQueries:
    """The one that all who share this embedder share too."""
    with _queues_lock:
        found = _queues.get(embedder)
        if found is None:
            found = _queues[embedder] = BatchedQueries(embedder)
        return found


def replace_hung_batch(embedder: Embedder) -> None:
    """The batch under way hangs: queries that come from now on do not wait for it, and count on where it was."""
    with _queues_lock:
        hung = _queues.get(embedder)
        if hung is not None:
            _queues[embedder] = BatchedQueries(embedder, hung.sizes)


def batch_sizes() -> Counter[int]:
    """How many batches of each size this process has embedded."""
    total: Counter[int] = Counter()
    with _queues_lock:
        for queries in _queues.values():
            total.update(dict(queries.sizes))  # a copy, since others count on
    return total
