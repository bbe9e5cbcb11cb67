"""How many recalls are at work in this process: where others wait for a core, what is optional is left out.

Recalls of one process take turns, since Python runs one thread at a time anyway.

Where many compete, each loses the interpreter at every row that the database gives it, and gets it back only after the
others have had it: eight threads answered 33 requests a second, one of them 53 (docs/decisions/0008). Whoever waits
for somebody else, such as a hosted model, lets the next one go on meanwhile.

Runs legs at the same time, each within a time limit, so that a slow or broken one costs only itself.
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

# So often what waits for room looks whether there is some.
POLL_SECONDS = 0.1
# Whoever recalled within so long is likely to do so again.
RECENT_SECONDS = 1.0
# A recall takes a few milliseconds; where there is always one at work, work that can wait goes on after this long.
MAX_YIELD_SECONDS = 0.02


class RecallLoad:
    """Counts the recalls of all who share a process. There is room while each of them can have a core.

    Where several processes are one server, each has its part of the cores, and room for one at least.
    """

    def __init__(self, processes: int = 1) -> None:
        self.capacity = max(1, cores() // processes)
        self.active_recalls = 0
        self.shed_count = 0  # how often something was left out, since the process began
        self._ended = -math.inf
        self._lock = threading.Condition()

    @contextmanager
    def recall(self) -> Iterator[None]:
        """One more for as long as this lasts."""
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
        """Whether somebody recalls, or did a moment ago."""
        return self.active_recalls > 0 or time.monotonic() - self._ended < RECENT_SECONDS

    def yield_to_recalls(self) -> None:
        """Until nobody recalls, for work that is done piece by piece between recalls; not for ever."""
        with self._lock:
            self._lock.wait_for(lambda: not self.active_recalls, MAX_YIELD_SECONDS)

    def wait_for_capacity(self, stop: threading.Event, seconds: float) -> None:
        """For work that nobody waits for: until there is room, it is to stop, or so long."""
        until = time.monotonic() + seconds
        while (
            self.active_recalls > self.capacity
            and time.monotonic() < until
            and not stop.wait(POLL_SECONDS)
        ):
            pass

    def overload_reason(self) -> str | None:
        """Why what is optional must be left out now; None while there is room for it. A refusal is counted.

        How many are at work is not said: they may be other tenants'.
        """
        with self._lock:
            if self.active_recalls <= self.capacity:
                return None
            self.shed_count += 1
            return "left out, because more recalls are at work than there are cores"


class ConcurrencyLimit:
    """So many have theirs at once; the others come in their order, those first that were interrupted."""

    def __init__(self, limit: int) -> None:
        self._free = limit
        self._queue: deque[threading.Lock] = deque()
        self._guard = threading.Lock()
        self._local = threading.local()

    @contextmanager
    def slot(self) -> Iterator[None]:
        """Waits for it. Within one's own turn it is that one."""
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
        """While it lasts, another may have the turn of this thread, if it has one."""
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
                gate.acquire()  # until whoever has the turn opens it
            except BaseException:  # an interruption must not leave a turn to nobody
                self._dequeue(gate)
                raise
        self._local.slot = True

    def _enqueue(self, first: bool) -> threading.Lock | None:
        """A closed gate; None where a turn is free."""
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
        self._release_next()  # it was opened just then


Search = Callable[[], Ranking]
Timed = tuple[Ranking, float]

# Each leg has its own threads: one that hangs cannot take those of another.
THREADS_PER_LEG = 4  # unless the settings say otherwise
STOPPING_SECONDS = 0.5


class _LegThreads:
    """A few daemon threads that keep their database connections, and never hold up the end of the process."""

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
        """Ends the threads, and waits a moment for those that are not hanging, so that their connections can go."""
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
    """The threads that legs run in, kept from one recall to the next, and whose turn it is."""

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
        """The rankings of the legs that answered in time, and the health of all.

        `here` names the legs that run in the caller's thread, in this order, while the others run in theirs: they
        should be ones that cannot hang, and the others ones that mostly wait or compute outside the interpreter. `late`
        is told each that did not answer in time.
        """
        started = time.perf_counter()
        # Each in a copy of the caller's context: what a recall has settled for itself holds for its legs.
        apart = {
            name: partial(copy_context().run, leg) for name, leg in legs.items() if name not in here
        }
        futures = {name: self._of(name).submit(leg) for name, leg in apart.items()}
        futures |= {name: _done(legs[name]) for name in here}
        with self.turns.waiting() if apart else nullcontext():
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
        except Exception as error:
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
    except Exception as error:
        future.set_exception(error)


def _timed(leg: Search) -> Timed:
    started = time.perf_counter()
    ranking = leg()
    check(
        ranking
    )  # here, so that a leg that breaks its promises fails alone and not the whole answer
    return ranking, (time.perf_counter() - started) * 1000


def _reason(error: Exception) -> str:
    """An error of ours tells what to do. Any other only its kind: it may quote texts that are not the caller's."""
    kind = type(error).__name__
    return f"{kind}: {error}" if isinstance(error, TrivetError) else f"an unexpected {kind}"


def _unanswered(name: str, reason: str, took_ms: float) -> LegHealth:
    return LegHealth(leg=name, answered=False, took_ms=round(took_ms, 3), reason=reason)
