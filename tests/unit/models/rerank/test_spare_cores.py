"""Automatic reranking runs only while cores are free, and the answer reports when it is skipped."""

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
    """A store with the bundled models whose only memory answers in other words."""
    with Trivet.open(path, background=False, rerank_time_limit_ms=600_000) as trivet:
        trivet.remember("My dog is called Rex.")
        trivet.drain()
        yield trivet


def hold_recalls(load: RecallLoad, recalls: int) -> ExitStack:
    """Hold this many recalls active while the stack is open."""
    stack = ExitStack()
    for _ in range(recalls):
        stack.enter_context(load.recall())
    return stack


def test_uncertain_recall_is_reranked_below_capacity(reading: Trivet) -> None:
    load = reading.engine.load
    with hold_recalls(load, load.capacity - 1):
        answer = reading.recall(DOUBTFUL)
    assert answer.hits[0].why.rerank is not None
    assert not answer.health.degraded


def test_sure_first_hit_stops_reranking(reading: Trivet) -> None:
    for number in range(4):
        reading.remember(
            f"Shelf {number} of the archive is for the maps of the {number + 3} southern parishes."
        )
    reading.drain()
    hits = reading.recall(DOUBTFUL, relevance_at_least=0).hits
    assert hits[0].content == "My dog is called Rex."
    assert hits[0].strength == "strong"
    assert [hit.why.rerank is not None for hit in hits] == [True] + [False] * (len(hits) - 1)
    requested = reading.recall(DOUBTFUL, relevance_at_least=0, rerank="best").hits
    assert all(hit.why.rerank is not None for hit in requested)


def test_unsure_first_hit_reranks_first_five(reading: Trivet) -> None:
    for number in range(7):
        reading.remember(
            f"Shelf {number} of the archive is for the maps of the {number + 3} southern parishes."
        )
    reading.drain()
    hits = reading.recall("does my pet like archives?", relevance_at_least=0).hits
    assert sum(hit.why.rerank is not None for hit in hits) == 5


def test_reranking_skipped_at_capacity_is_reported(reading: Trivet) -> None:
    load = reading.engine.load
    with hold_recalls(load, load.capacity):
        answer = reading.recall(DOUBTFUL)
    assert [hit.content for hit in answer.hits] == ["My dog is called Rex."]
    assert answer.hits[0].why.rerank is None
    leg = answer.health.legs[-1]
    assert (leg.leg, leg.answered) == ("rerank", False)
    assert (
        leg.reason
        == "skipped because more recalls are running than there are cores; the fused order stands"
    )
    assert load.shed_count == 1
    assert load.active_recalls == 0, "finished recalls must not be counted"
    assert reading.recall(DOUBTFUL).hits[0].why.rerank is not None


def test_requested_reranker_runs_under_load(reading: Trivet) -> None:
    with hold_recalls(reading.engine.load, 100):
        answer = reading.recall(DOUBTFUL, rerank="fast")
    assert answer.hits[0].why.rerank is not None


def test_failed_recall_is_not_counted() -> None:
    load = RecallLoad()
    with pytest.raises(RuntimeError), load.recall():
        raise RuntimeError
    assert load.active_recalls == 0
    assert load.overload_reason() is None


def test_background_work_yields_to_recalls(monkeypatch: pytest.MonkeyPatch) -> None:
    load = RecallLoad()
    assert not load.lately()
    with load.recall():
        assert load.lately()
        load.yield_to_recalls()  # returns after a limited wait
        monkeypatch.setattr("trivet.search.concurrency.MAX_YIELD_SECONDS", 2 * LIMIT_SECONDS)
        waiting = threading.Thread(target=load.yield_to_recalls, daemon=True)
        waiting.start()
        assert waiting.is_alive()
    ended(waiting)
    assert load.lately()
    monkeypatch.setattr("trivet.search.concurrency.RECENT_SECONDS", 0)
    assert not load.lately()


def test_server_processes_share_cores() -> None:
    assert RecallLoad(processes=2).capacity == max(1, RecallLoad().capacity // 2)
    assert RecallLoad(processes=1_000).capacity == 1
