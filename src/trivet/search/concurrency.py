"""Limits on concurrent recalls, load shedding, and the threads that run legs in parallel.

Eight unlimited threads answered 33 requests a second, one thread 53 (docs/decisions/0008).
"""

from __future__ import annotations

import math
import queue
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import contextmanager, nullcontext
from contextvars import copy_context
from functools import partial

from trivet.common.threads import cores
from trivet.errors import TrivetError
from trivet.search.fuse import check
from trivet.types import LegHealth, Ranking

# Interval at which background work checks for capacity.
POLL_SECONDS = 0.1
# After a recall, assume for this long that another follows.
RECENT_SECONDS = 1.0
# Longest wait of background work for recalls, which take a few milliseconds each.
MAX_YIELD_SECONDS = 0.02


class RecallLoad:
    """Count of running recalls, compared with this process's share of the cores."""

    def __init__(self, processes: int = 1) -> None:
        self.capacity = max(1, cores() // processes)
        self.active_recalls = 0
        self.shed_count = 0  # optional work skipped since the process started
        self._ended = -math.inf
        self._lock = threading.Condition()

    @contextmanager
    def recall(self) -> Iterator[None]:
        with self._lock:
            self.active_recalls += 1
        try:
            yield
        finally:
            with self._lock:
                self.active_recalls -= 1
                self._ended = time.monotonic()
                self._lock.notify_all()

    def lately(self) -> bool:
        return self.active_recalls > 0 or time.monotonic() - self._ended < RECENT_SECONDS

    def yield_to_recalls(self) -> None:
        with self._lock:
            self._lock.wait_for(lambda: not self.active_recalls, MAX_YIELD_SECONDS)

    def wait_for_capacity(self, stop: threading.Event, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (
            self.active_recalls > self.capacity
            and time.monotonic() < until
            and not stop.wait(POLL_SECONDS)
        ):
            pass

    def overload_reason(self) -> str | None:
        """Return why optional work must be skipped now, or None.

        The reason hides the number of recalls, which may belong to other tenants.
        """
        with self._lock:
            if self.active_recalls <= self.capacity:
                return None
            self.shed_count += 1
            return "skipped because more recalls are running than there are cores"


class ConcurrencyLimit:
    """A reentrant limit on concurrent threads, first come, first served."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._queue: deque[threading.Lock] = deque()
        self._guard = threading.Lock()
        self._local = threading.local()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Hold a slot; one that the thread already holds is reused."""
        if self._holds_slot():
            yield
            return
        self._acquire(first=False)
        try:
            yield
        finally:
            self._release()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Release this thread's slot meanwhile, and wait for one again."""
        if not self._holds_slot():
            yield
            return
        self._release()
        try:
            yield
        finally:
            self._acquire(first=True)

    def _holds_slot(self) -> bool:
        return getattr(self._local, "slot", False)

    def _acquire(self, first: bool) -> None:
        gate = self._enqueue(first)
        if gate is not None:
            try:
                gate.acquire()  # another thread opens it on release
            except BaseException:
                self._dequeue(gate)
                raise
        self._local.slot = True

    def _enqueue(self, first: bool) -> threading.Lock | None:
        with self._guard:
            if self._free:
                self._free -= 1
                return None
            gate = threading.Lock()
            gate.acquire()
            if first:
                self._queue.appendleft(gate)
            else:
                self._queue.append(gate)
            return gate

    def _release(self) -> None:
        self._local.slot = False
        self._release_next()

    def _release_next(self) -> None:
        with self._guard:
            if self._queue:
                self._queue.popleft().release()
            else:
                self._free += 1

    def _dequeue(self, gate: threading.Lock) -> None:
        with self._guard:
            if gate in self._queue:
                self._queue.remove(gate)
                return
        self._release_next()  # the gate was opened meanwhile


Search = Callable[[], Ranking]
Timed = tuple[Ranking, float]

# Default threads per leg. A hanging leg cannot use up those of another.
THREADS_PER_LEG = 4
STOPPING_SECONDS = 0.5


class _LegThreads:
    """Daemon threads of one leg, which keep their database connections."""

    def __init__(self, name: str, most: int) -> None:
        self._name = name
        self._most = most
        self._tasks: queue.SimpleQueue[tuple[Future[Timed], Search] | None] = queue.SimpleQueue()
        self._running: list[threading.Thread] = []
        self._waiting = 0
        self._guard = threading.Lock()

    def submit(self, leg: Search) -> Future[Timed]:
        future: Future[Timed] = Future()
        with self._guard:
            self._waiting += 1
            if self._waiting > len(self._running) and len(self._running) < self._most:
                thread = threading.Thread(
                    target=self._work, name=f"trivet-{self._name}", daemon=True
                )
                self._running.append(thread)
                thread.start()
        self._tasks.put((future, leg))
        return future

    def stop(self) -> None:
        for _ in self._running:
            self._tasks.put(None)
        deadline = time.monotonic() + STOPPING_SECONDS
        for thread in self._running:
            thread.join(max(0.0, deadline - time.monotonic()))

    def _work(self) -> None:
        while (task := self._tasks.get()) is not None:
            future, leg = task
            if future.set_running_or_notify_cancel():
                _fulfil(future, leg)
            with self._guard:
                self._waiting -= 1


class ParallelLegs:
    def __init__(self, threads_per_leg: int = THREADS_PER_LEG, at_once: int = 1) -> None:
        self.turns = ConcurrencyLimit(at_once)
        self._threads_per_leg = threads_per_leg
        self._threads: dict[str, _LegThreads] = {}

    def run(
        self,
        legs: Mapping[str, Search],
        time_limit_ms: int,
        here: Sequence[str],
        late: Callable[[str], None] = lambda name: None,
    ) -> tuple[list[Ranking], list[LegHealth]]:
        """Return the rankings of the legs that answered in time, and the health of every leg.

        Legs in `here` run in the caller's thread and must not hang.
        """
        started = time.perf_counter()
        threaded = {
            name: partial(copy_context().run, leg) for name, leg in legs.items() if name not in here
        }
        futures = {name: self._of(name).submit(leg) for name, leg in threaded.items()}
        futures |= {name: _done(legs[name]) for name in here}
        with self.turns.waiting() if threaded else nullcontext():
            outcomes = {
                name: self._outcome(name, futures[name], started, time_limit_ms, late)
                for name in legs
            }
        rankings = [ranking for ranking, _ in outcomes.values() if ranking is not None]
        return rankings, [health for _, health in outcomes.values()]

    def _outcome(
        self,
        name: str,
        future: Future[Timed],
        started: float,
        time_limit_ms: int,
        late: Callable[[str], None],
    ) -> tuple[Ranking | None, LegHealth]:
        left = started + time_limit_ms / 1000 - time.perf_counter()
        try:
            ranking, took_ms = future.result(timeout=max(left, 0.0))
            if took_ms > time_limit_ms:
                raise FutureTimeout
        except FutureTimeout:
            future.cancel()
            late(name)
            return None, _unanswered(name, f"no answer within {time_limit_ms} ms", time_limit_ms)
        except Exception as error:  # noqa: BLE001 - reported as the leg's health
            took_ms = (time.perf_counter() - started) * 1000
            return None, _unanswered(name, _reason(error), took_ms)
        count = len(ranking.candidates)
        return ranking, LegHealth(
            leg=name, answered=True, candidates=count, took_ms=round(took_ms, 3)
        )

    def stop(self) -> None:
        for threads in self._threads.values():
            threads.stop()

    def _of(self, name: str) -> _LegThreads:
        return self._threads.setdefault(name, _LegThreads(name, self._threads_per_leg))


def _done(leg: Search) -> Future[Timed]:
    future: Future[Timed] = Future()
    _fulfil(future, leg)
    return future


def _fulfil(future: Future[Timed], leg: Search) -> None:
    try:
        future.set_result(_timed(leg))
    except Exception as error:  # noqa: BLE001 - raised in the caller
        future.set_exception(error)


def _timed(leg: Search) -> Timed:
    started = time.perf_counter()
    ranking = leg()
    check(ranking)  # checked here, so that an invalid ranking fails this leg alone
    return ranking, (time.perf_counter() - started) * 1000


def _reason(error: Exception) -> str:
    """Quote only Trivet's own errors: others may contain texts of other users."""
    kind = type(error).__name__
    return f"{kind}: {error}" if isinstance(error, TrivetError) else f"an unexpected {kind}"


def _unanswered(name: str, reason: str, took_ms: float) -> LegHealth:
    return LegHealth(leg=name, answered=False, took_ms=round(took_ms, 3), reason=reason)
