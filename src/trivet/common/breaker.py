"""Circuit breakers, so that callers wait for a hanging endpoint only once.

While a breaker is open, calls fail at once. After a pause a background trial (half-open) closes it
or doubles the pause.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Literal, NamedTuple, TypeVar
from weakref import WeakValueDictionary

from trivet.errors import EmbedderError, TrivetError

# One failure may be due to the text; this many in a row are the endpoint's fault.
FAILURES_IN_A_ROW = 3
# Short, because most endpoints restart within seconds.
FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 60.0
# The text of a trial, which holds no user's words.
PROBE_TEXT = "is anybody there"

SYSTEM = "system "

State = Literal["closed", "open", "half-open"]
T = TypeVar("T")


class EndpointName(NamedTuple):
    """The identity of an endpoint; `purpose` is `embedder` or the like."""

    purpose: str
    url: str
    model: str


class CircuitBreaker:
    """The state of one endpoint, shared by its callers (`breaker_for`)."""

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
        self.opened = 0  # times opened since the process started
        self.refused = 0  # calls rejected while open

    @property
    def state(self) -> State:
        return self._state

    def call(self, ask: Callable[[], T]) -> T:
        """Return the result of `ask`; fail at once while open."""
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
            self._answered()  # the answer was unusable, but the endpoint works
            raise
        finally:
            with self._lock:
                self._in_flight -= 1
        self._answered()
        return answer

    def refusal(self) -> str | None:
        """Return why calls fail now, or None; start a trial when due."""
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
        return f"the {self.name.purpose} does not answer and is skipped; Trivet retries it"

    def try_again(self) -> None:
        """Send a trial now, regardless of the pause."""
        with self._lock:
            if self._state != "open":
                return
            self._state = "half-open"
            self._pause /= 2  # a failure doubles it again
        self._probe()

    def late(self) -> None:
        """Open the breaker if a caller gave up during a call to this endpoint."""
        with self._lock:
            if self._in_flight and self._state == "closed":
                self._open(FIRST_PAUSE_SECONDS)

    def _answered(self) -> None:
        with self._lock:
            self._state, self._failures = "closed", 0

    def _failed(self, error: TrivetError) -> None:
        """Count a failure, except a rejection: the endpoint has answered."""
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
        except Exception as error:  # noqa: BLE001 - any failure keeps the breaker open
            if isinstance(error, TrivetError) and error.fault is None:
                self._answered()  # a rejection is an answer
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
    """Return an endpoint's shared breaker; `trial` sends something short."""
    name = EndpointName(purpose, url, model)
    with _registry_lock:
        found = _registry.get(name)
        if found is None:
            found = _registry[name] = CircuitBreaker(name, trial, refuses_with=refuses_with)
        return found


def unavailable_endpoints(with_systems: bool) -> tuple[str, ...]:
    """Return a sentence per open breaker, without addresses."""
    return tuple(
        f"{breaker.refusal()} (opened {breaker.opened} times, {breaker.refused} calls skipped)"
        for breaker in breakers()
        if breaker.state != "closed"
        and (with_systems or not breaker.name.purpose.startswith(SYSTEM))
    )


def reset_breakers() -> None:
    with _registry_lock:
        _registry.clear()


def breakers() -> list[CircuitBreaker]:
    with _registry_lock:
        return sorted(_registry.values(), key=lambda breaker: breaker.name)
