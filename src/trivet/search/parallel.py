"""Runs legs at the same time, each within a time limit, so that a slow or broken one costs only itself."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import nullcontext
from contextvars import copy_context
from functools import partial

from trivet.errors import TrivetError
from trivet.search.fuse import check
from trivet.search.turns import Turns
from trivet.types import LegHealth, Ranking

Search = Callable[[], Ranking]
Timed = tuple[Ranking, float]

# Each leg has its own threads: one that hangs cannot take those of another.
THREADS_A_LEG = 4  # unless the settings say otherwise
STOPPING_SECONDS = 0.5


class _Threads:
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
                thread = threading.Thread(target=self._work, name=f"trivet-{self._name}", daemon=True)
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

    def __init__(self, threads_a_leg: int = THREADS_A_LEG, at_once: int = 1) -> None:
        self.turns = Turns(at_once)
        self._threads_a_leg = threads_a_leg
        self._threads: dict[str, _Threads] = {}

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
        apart = {name: partial(copy_context().run, leg) for name, leg in legs.items() if name not in here}
        futures = {name: self._of(name).submit(leg) for name, leg in apart.items()}
        futures |= {name: _done(legs[name]) for name in here}
        with self.turns.waiting() if apart else nullcontext():
            outcomes = {name: self._outcome(name, futures[name], started, time_limit_ms, late) for name in legs}
        rankings = [ranking for ranking, _ in outcomes.values() if ranking is not None]
        return rankings, [health for _, health in outcomes.values()]

    def _outcome(
        self, name: str, future: Future[Timed], started: float, time_limit_ms: int, late: Callable[[str], None]
    ) -> tuple[Ranking | None, LegHealth]:
        left = started + time_limit_ms / 1000 - time.perf_counter()
        try:
            ranking, took_ms = future.result(timeout=max(left, 0.0))
            if took_ms > time_limit_ms:
                raise FutureTimeout
        except FutureTimeout:
            future.cancel()
            late(name)
            return None, _silent(name, f"no answer within {time_limit_ms} ms", time_limit_ms)
        except Exception as error:  # noqa: BLE001 - any failure of a leg is that leg's alone, and is reported
            took_ms = (time.perf_counter() - started) * 1000
            return None, _silent(name, _reason(error), took_ms)
        count = len(ranking.candidates)
        return ranking, LegHealth(leg=name, answered=True, candidates=count, took_ms=round(took_ms, 3))

    def stop(self) -> None:
        for threads in self._threads.values():
            threads.stop()

    def _of(self, name: str) -> _Threads:
        return self._threads.setdefault(name, _Threads(name, self._threads_a_leg))


def _done(leg: Search) -> Future[Timed]:
    future: Future[Timed] = Future()
    _fulfil(future, leg)
    return future


def _fulfil(future: Future[Timed], leg: Search) -> None:
    try:
        future.set_result(_timed(leg))
    except Exception as error:  # noqa: BLE001 - handed to the recall that waits for it, and shown there
        future.set_exception(error)


def _timed(leg: Search) -> Timed:
    started = time.perf_counter()
    ranking = leg()
    check(ranking)  # here, so that a leg that breaks its promises fails alone and not the whole answer
    return ranking, (time.perf_counter() - started) * 1000


def _reason(error: Exception) -> str:
    """An error of ours tells what to do. Any other only its kind: it may quote texts that are not the caller's."""
    kind = type(error).__name__
    return f"{kind}: {error}" if isinstance(error, TrivetError) else f"an unexpected {kind}"


def _silent(name: str, reason: str, took_ms: float) -> LegHealth:
    return LegHealth(leg=name, answered=False, took_ms=round(took_ms, 3), reason=reason)
