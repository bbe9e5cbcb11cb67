"""The look that nobody asked for is taken while there is room, and says so when there is none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.waiting import LIMIT_SECONDS, ended
from trivet import Trivet
from trivet.search.concurrency import RecallLoad

DOUBTFUL = "name of my pet"


@pytest.fixture
def reading(path: Path) -> Iterator[Trivet]:
    """A store with the bundled models whose one memory answers in other words."""
    with Trivet.open(path, background=False, rerank_time_limit_ms=600_000) as trivet:
        trivet.remember("My dog is called Rex.")
        trivet.drain()
        yield trivet


def crowd(load: RecallLoad, recalls: int) -> ExitStack:
    """So many recalls at work for as long as this is open."""
    stack = ExitStack()
    for _ in range(recalls):
        stack.enter_context(load.recall())
    return stack


def test_a_doubtful_recall_is_read_while_there_is_room(reading: Trivet) -> None:
    load = reading.engine.load
    with crowd(load, load.capacity - 1):
        answer = reading.recall(DOUBTFUL)
    assert answer.hits[0].why.rerank is not None
    assert not answer.health.degraded


def test_where_the_first_is_sure_the_others_are_not_read(reading: Trivet) -> None:
    for number in range(4):
        reading.remember(
            f"Shelf {number} of the archive is for the maps of the {number + 3} southern parishes."
        )
    reading.drain()
    hits = reading.recall(DOUBTFUL, relevance_at_least=0).hits
    assert hits[0].content == "My dog is called Rex."
    assert hits[0].strength == "strong"
    assert [hit.why.rerank is not None for hit in hits] == [True] + [False] * (len(hits) - 1)
    asked_for = reading.recall(DOUBTFUL, relevance_at_least=0, rerank="best").hits
    assert all(hit.why.rerank is not None for hit in asked_for)


def test_where_the_first_does_not_answer_all_of_the_first_five_are_read(reading: Trivet) -> None:
    for number in range(7):
        reading.remember(
            f"Shelf {number} of the archive is for the maps of the {number + 3} southern parishes."
        )
    reading.drain()
    hits = reading.recall("does my pet like archives?", relevance_at_least=0).hits
    assert sum(hit.why.rerank is not None for hit in hits) == 5


def test_in_a_crowd_it_is_left_out_and_said(reading: Trivet) -> None:
    load = reading.engine.load
    with crowd(load, load.capacity):
        answer = reading.recall(DOUBTFUL)
    assert [hit.content for hit in answer.hits] == ["My dog is called Rex."]
    assert answer.hits[0].why.rerank is None
    leg = answer.health.legs[-1]
    assert (leg.leg, leg.answered) == ("rerank", False)
    assert (
        leg.reason
        == "left out, because more recalls are at work than there are cores; the fused order stands"
    )
    assert load.shed_count == 1
    assert load.active_recalls == 0, "who is done is counted no more"
    assert reading.recall(DOUBTFUL).hits[0].why.rerank is not None


def test_who_asks_for_a_reranker_gets_it_in_any_crowd(reading: Trivet) -> None:
    with crowd(reading.engine.load, 100):
        answer = reading.recall(DOUBTFUL, rerank="fast")
    assert answer.hits[0].why.rerank is not None


def test_a_recall_that_fails_is_counted_no_more() -> None:
    load = RecallLoad()
    with pytest.raises(RuntimeError), load.recall():
        raise RuntimeError
    assert load.active_recalls == 0
    assert load.overload_reason() is None


def test_work_that_can_wait_lets_recalls_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    load = RecallLoad()
    assert not load.lately()
    with load.recall():
        assert load.lately()
        load.yield_to_recalls()  # not for ever
        monkeypatch.setattr("trivet.search.concurrency.MAX_YIELD_SECONDS", 2 * LIMIT_SECONDS)
        waiting = threading.Thread(target=load.yield_to_recalls, daemon=True)
        waiting.start()
        assert waiting.is_alive()
    ended(waiting)
    assert load.lately()
    monkeypatch.setattr("trivet.search.concurrency.RECENT_SECONDS", 0)
    assert not load.lately()


def test_processes_of_one_server_share_the_cores() -> None:
    assert RecallLoad(processes=2).capacity == max(1, RecallLoad().capacity // 2)
    assert RecallLoad(processes=1_000).capacity == 1
