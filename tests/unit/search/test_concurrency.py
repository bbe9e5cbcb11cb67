"""The concurrency limit runs recalls in order of arrival, except while one of them waits."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from support.waiting import grown, happened, result_of
from trivet import Trivet
from trivet.search.concurrency import ConcurrencyLimit

RELEASE_DELAY = 0.05


class Clients:
    """Threads that take and release slots when the test says so."""

    def __init__(self, limit: ConcurrencyLimit) -> None:
        self.limit = limit
        self.entered: list[str] = []
        self._threads = ThreadPoolExecutor(16)
        self._release: dict[str, threading.Event] = {}

    def arrive(self, name: str) -> Future[None]:
        """Return once the thread has its slot or is queued."""
        queued = len(self.limit._queue)
        self._release[name] = threading.Event()
        work = self._threads.submit(self._run, name)
        while name not in self.entered and len(self.limit._queue) == queued:
            threading.Event().wait(0.001)
        return work

    def _run(self, name: str) -> None:
        with self.limit.slot():
            self.entered.append(name)
            happened(self._release[name])

    def release(self, name: str) -> None:
        self._release[name].set()


def test_limit_one_runs_in_arrival_order() -> None:
    crowd = Clients(ConcurrencyLimit(1))
    work = [crowd.arrive(name) for name in "abc"]
    for number, name in enumerate("abc", 1):
        grown(crowd.entered, number)
        assert crowd.entered == list("abc")[:number]
        crowd.release(name)
    for one in work:
        result_of(one)
    with crowd.limit.slot():  # all slots were released
        assert not crowd.limit._queue


def test_limit_two_runs_two_at_once() -> None:
    crowd = Clients(ConcurrencyLimit(2))
    work = [crowd.arrive(name) for name in "abc"]
    assert sorted(crowd.entered) == ["a", "b"]
    for name in "abc":
        crowd.release(name)
    for one in work:
        result_of(one)
    assert crowd.entered[2] == "c"


def test_waiting_slot_yields_then_resumes_first() -> None:
    crowd = Clients(ConcurrencyLimit(1))
    with ExitStack() as mine:
        mine.enter_context(crowd.limit.slot())
        others = [crowd.arrive(name) for name in "ab"]
        assert crowd.entered == []
        with ExitStack() as waiting:
            waiting.enter_context(crowd.limit.waiting())
            grown(crowd.entered, 1)
            threading.Timer(RELEASE_DELAY, crowd.release, "a").start()
        assert crowd.entered == ["a"], "b must queue behind the interrupted slot"
    crowd.release("b")
    for one in others:
        result_of(one)


def test_nested_slots_share_and_waiting_without_slot_is_noop() -> None:
    limit = ConcurrencyLimit(1)
    with limit.waiting():
        pass
    with limit.slot(), limit.slot():
        pass
    with limit.slot():  # the nested slot was released only once
        assert limit._free == 0
    assert limit._free == 1


def test_error_releases_slot() -> None:
    limit = ConcurrencyLimit(1)
    with pytest.raises(ZeroDivisionError), limit.slot():
        raise ZeroDivisionError
    with limit.slot():
        assert limit._free == 0


def test_recalls_of_one_store_share_limit(trivet: Trivet) -> None:
    trivet.remember("the harbour office opens at nine")
    with ThreadPoolExecutor(1) as threads:
        with trivet.engine.legs.turns.slot():
            asked = threads.submit(trivet.recall, "harbour office")
            while not trivet.engine.legs.turns._queue:
                threading.Event().wait(0.001)
            assert not asked.done()
        assert len(result_of(asked).hits) == 1
