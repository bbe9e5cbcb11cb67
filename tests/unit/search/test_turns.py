"""Recalls take turns: one after the other in their order, but for those that wait for somebody else."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from support.waiting import grown, happened, result_of
from trivet import Trivet
from trivet.search.concurrency import ConcurrencyLimit

NOBODY_COMES = 0.05


class Crowd:
    """Threads that take their turns, each when the test says so, and leave when it says so."""

    def __init__(self, turns: ConcurrencyLimit) -> None:
        self.turns = turns
        self.came: list[str] = []
        self._threads = ThreadPoolExecutor(16)
        self._leave: dict[str, threading.Event] = {}

    def come(self, name: str) -> Future[None]:
        """Returns once it has its turn or stands in line."""
        standing = len(self.turns._queue)
        self._leave[name] = threading.Event()
        work = self._threads.submit(self._turn, name)
        while name not in self.came and len(self.turns._queue) == standing:
            threading.Event().wait(0.001)
        return work

    def _turn(self, name: str) -> None:
        with self.turns.slot():
            self.came.append(name)
            happened(self._leave[name])

    def leave(self, name: str) -> None:
        self._leave[name].set()


def test_they_come_in_their_order_and_one_at_a_time() -> None:
    crowd = Crowd(ConcurrencyLimit(1))
    work = [crowd.come(name) for name in "abc"]
    for number, name in enumerate("abc", 1):
        grown(crowd.came, number)
        assert crowd.came == list("abc")[:number]
        crowd.leave(name)
    for one in work:
        result_of(one)
    with crowd.turns.slot():  # all of them gave it back
        assert not crowd.turns._queue


def test_so_many_as_are_allowed_have_theirs_at_once() -> None:
    crowd = Crowd(ConcurrencyLimit(2))
    work = [crowd.come(name) for name in "abc"]
    assert sorted(crowd.came) == ["a", "b"]
    for name in "abc":
        crowd.leave(name)
    for one in work:
        result_of(one)
    assert crowd.came[2] == "c"


def test_who_waits_for_somebody_else_lets_the_next_go_on_and_is_the_next_then() -> None:
    crowd = Crowd(ConcurrencyLimit(1))
    with ExitStack() as mine:
        mine.enter_context(crowd.turns.slot())
        others = [crowd.come(name) for name in "ab"]
        assert crowd.came == []
        with ExitStack() as waiting:
            waiting.enter_context(crowd.turns.waiting())
            grown(crowd.came, 1)
            threading.Timer(NOBODY_COMES, crowd.leave, "a").start()
        assert crowd.came == ["a"], "b stands behind the one that was interrupted"
    crowd.leave("b")
    for one in others:
        result_of(one)


def test_a_turn_within_ones_own_is_that_one_and_waiting_without_one_is_nothing() -> None:
    turns = ConcurrencyLimit(1)
    with turns.waiting():
        pass
    with turns.slot(), turns.slot():
        pass
    with turns.slot():  # it was given back once
        assert turns._free == 0
    assert turns._free == 1


def test_an_error_gives_the_turn_back() -> None:
    turns = ConcurrencyLimit(1)
    with pytest.raises(ZeroDivisionError), turns.slot():
        raise ZeroDivisionError
    with turns.slot():
        assert turns._free == 0


def test_recalls_of_one_store_take_turns(trivet: Trivet) -> None:
    trivet.remember("the harbour office opens at nine")
    with ThreadPoolExecutor(1) as threads:
        with trivet.engine.legs.turns.slot():
            asked = threads.submit(trivet.recall, "harbour office")
            while not trivet.engine.legs.turns._queue:
                threading.Event().wait(0.001)
            assert not asked.done()
        assert len(result_of(asked).hits) == 1
