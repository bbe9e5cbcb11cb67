"""A breaker for each endpoint: one that hangs is waited for once, and then left alone until it answers again.

Closed: every question is asked. After a timeout, or several failures in a row, it opens: nobody asks, and whoever would
have asked is told so at once. After a pause a thread of its own asks something short, which no caller waits for
(half-open). An answer closes it; silence makes the next pause twice as long.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from trivet.errors import EmbedderError, TrivetError

# One failure may be the text's fault, or a moment's; so many in a row are the endpoint's.
FAILURES_IN_A_ROW = 3
# Short, since most restart within seconds; and never longer than an operator would wait before looking.
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
# What is asked to see whether it answers again: nobody's words.
PROBE_TEXT = "is anybody there"

# How the purpose of a federated system begins; its name follows.
SYSTEM = "system "

State = Literal["closed", "open", "half-open"]
T = TypeVar("T")


class EndpointName(NamedTuple):
    """What an endpoint is asked for (`embedder`, `reranker`, ...), where it is, and its model."""

    purpose: str
    url: str
    model: str


class CircuitBreaker:
    """The state of one endpoint. Threads share it, and so do all who ask the same endpoint (`breaker_for`)."""

    def __init__(
        self,
        name: EndpointName,
        trial: Callable[[], object],
        clock: Callable[[], float] = time.monotonic,
        refuses_with: Callable[[str], TrivetError] = EmbedderError,
    ) -> None:
        self.name = name
        self._trial = trial
        self._refuses_with = refuses_with
        self._clock = clock
        self._lock = threading.Lock()
        self._state: State = "closed"
        self._failures = 0
        self._in_flight = 0
        self._pause = FIRST_PAUSE_SECONDS
        self._next_trial = 0.0
        self.opened = 0  # how often, since the process began
        self.refused = 0  # how many questions were not asked

    @property
    def state(self) -> State:
        return self._state

    def call(self, ask: Callable[[], T]) -> T:
        """What `ask` returns. An error at once while the endpoint is left alone."""
        if refusal := self.refusal():
            raise self._refuses_with(refusal)
        with self._lock:
            self._in_flight += 1
        try:
            answer = ask()
        except TrivetError as error:
            self._failed(error)
            raise
        except Exception:
            self._answered()  # with something that could not be used, but it did
            raise
        finally:
            with self._lock:
                self._in_flight -= 1
        self._answered()
        return answer

    def refusal(self) -> str | None:
        """Why the endpoint is not asked now; None if it is. Starts a trial when one is due."""
        if self.state == "closed":
            return None
        with self._lock:
            if self._state == "closed":
                return None
            self.refused += 1
            due = self._state == "open" and self._clock() >= self._next_trial
            if due:
                self._state = "half-open"
        if due:
            threading.Thread(
                target=self._probe, name=f"trivet-trial-{self.name.purpose}", daemon=True
            ).start()
        return f"the {self.name.purpose} does not answer and is not waited for; it is tried again by itself"

    def try_again(self) -> None:
        """Asks at once whether it answers, whatever the pause: for a caller who came for nothing else and waits."""
        with self._lock:
            if self._state != "open":
                return
            self._state = "half-open"
            self._pause /= 2  # so that a failure leaves it as it is
        self._probe()

    def late(self) -> None:
        """A caller's patience is at its end. If it was this endpoint that it waited for, nobody else shall."""
        with self._lock:
            if self._in_flight and self._state == "closed":
                self._open(FIRST_PAUSE_SECONDS)

    def _answered(self) -> None:
        with self._lock:
            self._state, self._failures = "closed", 0

    def _failed(self, error: TrivetError) -> None:
        """An endpoint that refused a text has answered: another's text may be fine."""
        with self._lock:
            if error.fault is None:
                self._failures = 0
            elif self._state == "closed":
                self._failures += 1
                if error.fault == "hung" or self._failures >= FAILURES_IN_A_ROW:
                    self._open(FIRST_PAUSE_SECONDS)

    def _open(self, pause: float) -> None:
        self.opened += self._state == "closed"
        self._state, self._failures, self._pause = "open", 0, pause
        self._next_trial = self._clock() + pause

    def _probe(self) -> None:
        try:
            self._trial()
        except Exception as error:
            if isinstance(error, TrivetError) and error.fault is None:
                self._answered()  # it refused, which is an answer
                return
            with self._lock:
                if self._state == "half-open":
                    self._open(min(2 * self._pause, LONGEST_PAUSE_SECONDS))
        else:
            self._answered()


_registry: WeakValueDictionary[EndpointName, CircuitBreaker] = WeakValueDictionary()
_registry_lock = threading.Lock()


def breaker_for(
    purpose: str,
    url: str,
    model: str,
    trial: Callable[[], object],
    refuses_with: Callable[[str], TrivetError] = EmbedderError,
) -> CircuitBreaker:
    """The one of this endpoint, whoever asks it. `trial` asks something short, and raises if there is no answer."""
    name = EndpointName(purpose, url, model)
    with _registry_lock:
        found = _registry.get(name)
        if found is None:
            found = _registry[name] = CircuitBreaker(name, trial, refuses_with=refuses_with)
        return found


def unavailable_endpoints(with_systems: bool) -> tuple[str, ...]:
    """A sentence on each that is left alone now, without its address. Other systems are the owner's business."""
    return tuple(
        f"{breaker.refusal()} ({breaker.opened} times so far; {breaker.refused} questions were not asked)"
        for breaker in breakers()
        if breaker.state != "closed"
        and (with_systems or not breaker.name.purpose.startswith(SYSTEM))
    )


def reset_breakers() -> None:
    """As if this process had asked nobody yet."""
    with _registry_lock:
        _registry.clear()


def breakers() -> list[CircuitBreaker]:
    """Those of this process, for its metrics and statistics."""
    with _registry_lock:
        return sorted(_registry.values(), key=lambda breaker: breaker.name)
