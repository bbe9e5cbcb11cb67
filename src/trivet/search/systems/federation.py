"""The other systems of a federation: each is asked in a thread of its own, and costs at most its own contribution."""

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

# How many recalls may ask one system at the same time; more wait, each within the system's time limit.
MAX_CONCURRENT_REQUESTS = 4
# A system ends by its own time limit; so much later it is given up, whatever it does.
GRACE_SECONDS = 0.5
MAX_REASON_CHARACTERS = 300
MAX_QUOTED_CHARACTERS = 300

Ask = Callable[[ExternalSystem, SystemQuery, float], Iterable[RawHit]]


class OpenTrivet(Protocol):
    """Another Trivet, kept open between queries."""

    def ask(self, system: ExternalSystem, asked: SystemQuery, end: float) -> Iterable[RawHit]: ...
    def close(self) -> None: ...


class SystemAnswer(msgspec.Struct, frozen=True):
    """What became of asking one system: a reply, or none and why. `quoted` is what it said itself, for people."""

    name: str
    system: ExternalSystem
    reply: Reply | None
    health: LegHealth
    quoted: str = ""


class _Silent(EmbedderError):
    """Carries what became of asking a system past its breaker."""

    def __init__(self, failure: Exception, hung: bool) -> None:
        super().__init__(str(failure), "hung" if hung else "down")
        self.failure = failure


class Systems:
    """Made once for a process. Everything that is asked again and again is kept here: maps, open stores, counts."""

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
        """Asks at once and returns at once; `collect` waits."""
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
        """What each has said by its time limit, counted from `started` (time.monotonic)."""
        return [self._heard(name, future, started) for name, future in futures.items()]

    def close(self) -> None:
        with self._guard:
            for other in self._others.values():
                other.close()
            self._others.clear()

    def _heard(self, name: str, future: Future[Reply], started: float) -> SystemAnswer:
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
        except Exception as error:
            reason, quoted = f"asking it failed ({type(error).__name__})", str(error)
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
                raise SystemFailed(f"{MAX_CONCURRENT_REQUESTS} others are asking it already")
            try:
                ask = partial(self._answer, name, system, asked, open_other, end)
                future.set_result(self._breakers[name].call(ask))
            finally:
                self._places[name].release()
        except _Silent as silent:
            future.set_exception(silent.failure)
        except Exception as error:
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
        """What it answers; a failure as the breaker understands it: silent, or able to say that it cannot."""
        try:
            raw = self._ask(name, system, open_other)(system, asked, end)
            return reply_of(raw, system, self._names[name])
        except Exception as error:
            raise _Silent(error, hung=time.monotonic() >= end) from error

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
            return _way(system.kind)
        with self._guard:
            if name not in self._others:
                self._others[name] = open_other(system)
            return self._others[name].ask


def _way(kind: Kind) -> Ask:
    """What speaks with a kind is loaded when the first of that kind is asked: most recalls ask nobody."""
    if kind == "command":
        from trivet.search.systems.command import ask_command as ask
    elif kind == "http":
        from trivet.search.systems.remote import ask_http as ask
    else:
        from trivet.search.systems.remote import ask_mcp as ask
    return ask
