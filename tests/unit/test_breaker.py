"""An endpoint that does not answer is waited for once, left alone, and tried by a thread that nobody waits for."""

from __future__ import annotations

import threading

import pytest

from support.waiting import ended
from trivet.common.breaker import (
    FAILURES_IN_A_ROW,
    FIRST_PAUSE_SECONDS,
    LONGEST_PAUSE_SECONDS,
    CircuitBreaker,
    EndpointName,
    breaker_for,
    breakers,
)
from trivet.errors import EmbedderError


class Endpoint:
    """Fails with `fault`, or answers; its clock is the test's."""

    def __init__(self) -> None:
        self.fault: str | None = None
        self.refuses = False
        self.asked = self.tried = 0
        self.now = 100.0
        self.breaker = CircuitBreaker(
            EndpointName("embedder", "http://there", "m"), self.trial, lambda: self.now
        )

    def ask(self) -> str:
        self.asked += 1
        if self.fault or self.refuses:
            raise EmbedderError("no", self.fault)
        return "answer"

    def trial(self) -> None:
        self.tried += 1
        if self.fault:
            raise EmbedderError("no", self.fault)

    def fails(self) -> None:
        with pytest.raises(EmbedderError):
            self.breaker.call(self.ask)

    def after(self, seconds: float) -> None:
        """Somebody asks so much later, and a trial that it sets off ends."""
        self.now += seconds
        assert self.breaker.refusal()
        for thread in threading.enumerate():
            if thread.name.startswith("trivet-trial"):
                ended(thread)


def test_a_timeout_opens_it_and_nobody_else_asks() -> None:
    one = Endpoint()
    one.fault = "hung"
    one.fails()
    for _ in range(5):
        with pytest.raises(EmbedderError, match="embedder does not answer"):
            one.breaker.call(one.ask)
    assert (one.asked, one.tried, one.breaker.state) == (1, 0, "open")
    assert (one.breaker.opened, one.breaker.refused) == (1, 5)


def test_other_failures_open_it_when_they_repeat() -> None:
    one = Endpoint()
    one.fault = "down"
    for _ in range(FAILURES_IN_A_ROW - 1):
        one.fails()
    one.fault = None
    assert one.breaker.call(one.ask) == "answer"
    one.fault = "down"
    for _ in range(FAILURES_IN_A_ROW):
        assert one.breaker.state == "closed"
        one.fails()
    assert one.breaker.state == "open"


def test_who_sends_what_the_endpoint_refuses_takes_it_from_nobody() -> None:
    one = Endpoint()
    one.refuses = True
    for _ in range(10):
        one.fails()
    assert (one.asked, one.breaker.state) == (10, "closed")


def test_it_is_tried_after_pauses_that_grow_and_closes_when_it_answers() -> None:
    one = Endpoint()
    one.fault = "hung"
    one.fails()
    pause, asked = FIRST_PAUSE_SECONDS, 0
    while pause < LONGEST_PAUSE_SECONDS:
        one.after(pause * 0.9)
        assert one.tried == asked, "too early"
        one.after(pause * 0.2)
        asked += 1
        assert (one.tried, one.breaker.state) == (asked, "open")
        pause *= 2
    one.fault = None
    one.after(LONGEST_PAUSE_SECONDS)
    assert one.breaker.state == "closed"
    assert one.breaker.call(one.ask) == "answer"
    assert (one.asked, one.breaker.opened) == (2, 1)


def test_who_is_out_of_patience_opens_it_only_if_it_was_this_endpoint() -> None:
    one = Endpoint()
    one.breaker.late()
    assert one.breaker.state == "closed", "nothing was asked of it"
    one.breaker.call(one.breaker.late)
    assert one.breaker.state == "closed", "it answered after all"
    states = []

    def slow() -> None:
        one.breaker.late()
        states.append(one.breaker.state)

    one.breaker.call(slow)
    assert states == ["open"]


def test_who_insists_has_it_asked_at_once() -> None:
    one = Endpoint()
    one.fault = "hung"
    one.fails()
    one.breaker.try_again()
    assert (one.tried, one.breaker.state) == (1, "open")
    one.after(FIRST_PAUSE_SECONDS)
    assert one.tried == 2, "its pause has not grown"
    one.fault = None
    one.breaker.try_again()
    assert one.breaker.state == "closed"


def test_a_trial_that_is_refused_is_an_answer() -> None:
    def trial() -> None:
        raise EmbedderError("no such model")

    one = Endpoint()
    one.breaker._trial = trial
    one.fault = "hung"
    one.fails()
    one.breaker.try_again()
    assert one.breaker.state == "closed"


def test_one_endpoint_has_one_breaker_and_another_model_another() -> None:
    first = breaker_for("embedder", "http://one", "a", lambda: None)
    assert breaker_for("embedder", "http://one", "a", lambda: None) is first
    assert breaker_for("embedder", "http://one", "b", lambda: None) is not first
    assert first in breakers()
