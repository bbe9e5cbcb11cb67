"""A circuit breaker stops calls to an unresponsive endpoint and retries it in the background."""

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
    """Endpoint that fails with `fault` or answers, with a clock set by the test."""

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
        """Call after the given seconds and wait for any trial this starts."""
        self.now += seconds
        assert self.breaker.refusal()
        for thread in threading.enumerate():
            if thread.name.startswith("trivet-trial"):
                ended(thread)


def test_timeout_opens_breaker() -> None:
    endpoint = Endpoint()
    endpoint.fault = "hung"
    endpoint.fails()
    for _ in range(5):
        with pytest.raises(EmbedderError, match="embedder does not answer"):
            endpoint.breaker.call(endpoint.ask)
    assert (endpoint.asked, endpoint.tried, endpoint.breaker.state) == (1, 0, "open")
    assert (endpoint.breaker.opened, endpoint.breaker.refused) == (1, 5)


def test_repeated_failures_open_breaker() -> None:
    endpoint = Endpoint()
    endpoint.fault = "down"
    for _ in range(FAILURES_IN_A_ROW - 1):
        endpoint.fails()
    endpoint.fault = None
    assert endpoint.breaker.call(endpoint.ask) == "answer"
    endpoint.fault = "down"
    for _ in range(FAILURES_IN_A_ROW):
        assert endpoint.breaker.state == "closed"
        endpoint.fails()
    assert endpoint.breaker.state == "open"


def test_rejected_requests_do_not_open_breaker() -> None:
    endpoint = Endpoint()
    endpoint.refuses = True
    for _ in range(10):
        endpoint.fails()
    assert (endpoint.asked, endpoint.breaker.state) == (10, "closed")


def test_trials_back_off_and_success_closes_breaker() -> None:
    endpoint = Endpoint()
    endpoint.fault = "hung"
    endpoint.fails()
    pause, asked = FIRST_PAUSE_SECONDS, 0
    while pause < LONGEST_PAUSE_SECONDS:
        endpoint.after(pause * 0.9)
        assert endpoint.tried == asked, "too early"
        endpoint.after(pause * 0.2)
        asked += 1
        assert (endpoint.tried, endpoint.breaker.state) == (asked, "open")
        pause *= 2
    endpoint.fault = None
    endpoint.after(LONGEST_PAUSE_SECONDS)
    assert endpoint.breaker.state == "closed"
    assert endpoint.breaker.call(endpoint.ask) == "answer"
    assert (endpoint.asked, endpoint.breaker.opened) == (2, 1)


def test_late_call_opens_only_breaker_in_use() -> None:
    endpoint = Endpoint()
    endpoint.breaker.late()
    assert endpoint.breaker.state == "closed", "no call was running"
    endpoint.breaker.call(endpoint.breaker.late)
    assert endpoint.breaker.state == "closed", "the call succeeded"
    states = []

    def slow() -> None:
        endpoint.breaker.late()
        states.append(endpoint.breaker.state)

    endpoint.breaker.call(slow)
    assert states == ["open"]


def test_try_again_runs_trial_immediately() -> None:
    endpoint = Endpoint()
    endpoint.fault = "hung"
    endpoint.fails()
    endpoint.breaker.try_again()
    assert (endpoint.tried, endpoint.breaker.state) == (1, "open")
    endpoint.after(FIRST_PAUSE_SECONDS)
    assert endpoint.tried == 2, "the pause must not have grown"
    endpoint.fault = None
    endpoint.breaker.try_again()
    assert endpoint.breaker.state == "closed"


def test_rejected_trial_closes_breaker() -> None:
    def trial() -> None:
        raise EmbedderError("no such model")

    endpoint = Endpoint()
    endpoint.breaker._trial = trial
    endpoint.fault = "hung"
    endpoint.fails()
    endpoint.breaker.try_again()
    assert endpoint.breaker.state == "closed"


def test_breakers_are_per_endpoint_and_model() -> None:
    first = breaker_for("embedder", "http://one", "a", lambda: None)
    assert breaker_for("embedder", "http://one", "a", lambda: None) is first
    assert breaker_for("embedder", "http://one", "b", lambda: None) is not first
    assert first in breakers()
