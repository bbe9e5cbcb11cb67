"""Requests to all external systems in parallel; a failing one costs only its own hits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from functools import partial
from typing import Protocol

import msgspec

from trivet.common.breaker import PROBE_TEXT, SYSTEM, CircuitBreaker, breaker_for
from trivet.errors import EmbedderError
from trivet.search.legs.registry import leg_names
from trivet.search.systems.messages import (
    IdMap,
    RawHit,
    Reply,
    SystemFailed,
    SystemQuery,
    clean,
    reply_of,
)
from trivet.settings.systems import ExternalSystem, Kind, check_systems
from trivet.types import LegHealth

# Concurrent requests per system; further recalls wait, within the system's time limit.
MAX_CONCURRENT_REQUESTS = 4
# Seconds to wait for a request after its time limit before giving it up.
GRACE_SECONDS = 0.5
MAX_REASON_CHARACTERS = 300
MAX_QUOTED_CHARACTERS = 300

Ask = Callable[[ExternalSystem, SystemQuery, float], Iterable[RawHit]]


class OpenTrivet(Protocol):
    def ask(self, system: ExternalSystem, asked: SystemQuery, end: float) -> Iterable[RawHit]: ...
    def close(self) -> None: ...


class SystemAnswer(msgspec.Struct, frozen=True):
    """The outcome of one request; `quoted` is the system's own text, for people only."""

    name: str
    system: ExternalSystem
    reply: Reply | None
    health: LegHealth
    quoted: str = ""


class _NoReply(EmbedderError):
    def __init__(self, failure: Exception, hung: bool) -> None:
        super().__init__(str(failure), "hung" if hung else "down")
        self.failure = failure


class Systems:
    def __init__(self, declared: Mapping[str, ExternalSystem]) -> None:
        check_systems(declared, leg_names())
        self.declared = declared
        self._names = {name: IdMap(system) for name, system in declared.items()}
        self._places = {
            name: threading.BoundedSemaphore(MAX_CONCURRENT_REQUESTS) for name in declared
        }
        self._others: dict[str, OpenTrivet] = {}
        self._guard = threading.Lock()
        self._breakers: dict[str, CircuitBreaker] = {}
        self.asked = dict.fromkeys(declared, 0)
        self.failed = dict.fromkeys(declared, 0)

    def start(
        self,
        systems: Mapping[str, ExternalSystem],
        asked: SystemQuery,
        open_other: Callable[[ExternalSystem], OpenTrivet],
    ) -> dict[str, Future[Reply]]:
        futures: dict[str, Future[Reply]] = {}
        for name, system in systems.items():
            futures[name] = Future()
            if refusal := self._breaker(name, system, open_other).refusal():
                futures[name].set_exception(SystemFailed(refusal))
                continue
            work = (futures[name], name, system, asked, open_other)
            threading.Thread(
                target=self._work, args=work, name=f"trivet-{name}", daemon=True
            ).start()
        return futures

    def collect(self, futures: Mapping[str, Future[Reply]], started: float) -> list[SystemAnswer]:
        """Return the outcomes; time limits count from `started`."""
        return [self._answer_of(name, future, started) for name, future in futures.items()]

    def close(self) -> None:
        with self._guard:
            for other in self._others.values():
                other.close()
            self._others.clear()

    def _answer_of(self, name: str, future: Future[Reply], started: float) -> SystemAnswer:
        system = self.declared[name]
        limit = started + system.time_limit_ms / 1000
        reply, reason, quoted = None, "", ""
        try:
            reply = future.result(max(0.0, limit + GRACE_SECONDS - time.monotonic()))
        except FutureTimeout:
            self._breakers[name].late()
            reason = f"no answer within {system.time_limit_ms} ms"
        except SystemFailed as failure:
            reason, quoted = str(failure), failure.quoted
        except Exception as error:  # noqa: BLE001 - reported as the system's health
            reason, quoted = f"the request failed ({type(error).__name__})", str(error)
        took = round((time.monotonic() - started) * 1000, 3)
        with self._guard:
            self.asked[name] += 1
            self.failed[name] += reply is None
            so_far = f"{self.failed[name]} of {self.asked[name]} times since the store was opened"
        if reply is None:
            health = LegHealth(
                leg=name,
                answered=False,
                took_ms=took,
                reason=f"{reason[:MAX_REASON_CHARACTERS]} ({so_far})",
            )
            return SystemAnswer(
                name, system, None, health, " ".join(clean(quoted[:MAX_QUOTED_CHARACTERS]).split())
            )
        return SystemAnswer(
            name,
            system,
            reply,
            LegHealth(leg=name, answered=True, candidates=len(reply.hits), took_ms=took),
        )

    def _work(
        self,
        future: Future[Reply],
        name: str,
        system: ExternalSystem,
        asked: SystemQuery,
        open_other: Callable[[ExternalSystem], OpenTrivet],
    ) -> None:
        end = time.monotonic() + system.time_limit_ms / 1000
        try:
            if not self._places[name].acquire(timeout=system.time_limit_ms / 1000):
                raise SystemFailed(f"it already has {MAX_CONCURRENT_REQUESTS} requests running")
            try:
                ask = partial(self._answer, name, system, asked, open_other, end)
                future.set_result(self._breakers[name].call(ask))
            finally:
                self._places[name].release()
        except _NoReply as silent:
            future.set_exception(silent.failure)
        except Exception as error:  # noqa: BLE001 - raised in the caller
            future.set_exception(
                SystemFailed(str(error)) if isinstance(error, EmbedderError) else error
            )

    def _answer(
        self,
        name: str,
        system: ExternalSystem,
        asked: SystemQuery,
        open_other: Callable[[ExternalSystem], OpenTrivet],
        end: float,
    ) -> Reply:
        try:
            raw = self._ask(name, system, open_other)(system, asked, end)
            return reply_of(raw, system, self._names[name])
        except Exception as error:
            raise _NoReply(error, hung=time.monotonic() >= end) from error

    def _breaker(
        self, name: str, system: ExternalSystem, open_other: Callable[[ExternalSystem], OpenTrivet]
    ) -> CircuitBreaker:
        def trial() -> None:
            end = time.monotonic() + system.time_limit_ms / 1000
            self._answer(
                name, system, SystemQuery(PROBE_TEXT, tuple(PROBE_TEXT.split())), open_other, end
            )

        with self._guard:
            if name not in self._breakers:
                self._breakers[name] = breaker_for(
                    SYSTEM + name, msgspec.json.encode(system).decode(), "", trial
                )
            return self._breakers[name]

    def _ask(
        self, name: str, system: ExternalSystem, open_other: Callable[[ExternalSystem], OpenTrivet]
    ) -> Ask:
        if system.kind != "trivet":
            return _client_for(system.kind)
        with self._guard:
            if name not in self._others:
                self._others[name] = open_other(system)
            return self._others[name].ask


def _client_for(kind: Kind) -> Ask:
    """Import a client on first use: most recalls ask no system."""
    if kind == "command":
        from trivet.search.systems.command import ask_command as ask
    elif kind == "http":
        from trivet.search.systems.remote import ask_http as ask
    else:
        from trivet.search.systems.remote import ask_mcp as ask
    return ask
