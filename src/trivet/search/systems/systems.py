"""The members of a federation: each is asked in a thread of its own, and costs at most its own contribution."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from typing import Protocol

import msgspec

from trivet.search.systems.names import Names
from trivet.search.systems.read import clean, reply_of
from trivet.search.systems.reported_hits import Asked, MemberFailed, Raw, Reply
from trivet.settings.systems import Kind, Member, check_members
from trivet.types import LegHealth

# How many recalls may ask one member at the same time; more wait, each within the member's time limit.
AT_ONCE = 4
# A member ends by its own time limit; so much later it is given up, whatever it does.
GRACE_SECONDS = 0.5
LONGEST_REASON = 300
LONGEST_QUOTED = 300

Ask = Callable[[Member, Asked, float], Iterable[Raw]]


class Other(Protocol):
    """A Trivet that is kept open between queries."""

    def ask(self, member: Member, asked: Asked, end: float) -> Iterable[Raw]: ...
    def close(self) -> None: ...


class Heard(msgspec.Struct, frozen=True):
    """What became of asking one member: a reply, or none and why. `quoted` is what it said itself, for people."""

    name: str
    member: Member
    reply: Reply | None
    health: LegHealth
    quoted: str = ""


class Members:
    """Made once for a process. Everything that is asked again and again is kept here: maps, open stores, counts."""

    def __init__(self, declared: Mapping[str, Member]) -> None:
        check_members(declared)
        self.declared = declared
        self._names = {name: Names(member) for name, member in declared.items()}
        self._places = {name: threading.BoundedSemaphore(AT_ONCE) for name in declared}
        self._others: dict[str, Other] = {}
        self._guard = threading.Lock()
        self.asked = dict.fromkeys(declared, 0)
        self.failed = dict.fromkeys(declared, 0)

    def start(
        self, members: Mapping[str, Member], asked: Asked, open_other: Callable[[Member], Other]
    ) -> dict[str, Future[Reply]]:
        """Asks at once and returns at once; `collect` waits."""
        futures: dict[str, Future[Reply]] = {}
        for name, member in members.items():
            futures[name] = Future()
            work = (futures[name], name, member, asked, open_other)
            threading.Thread(target=self._work, args=work, name=f"trivet-{name}", daemon=True).start()
        return futures

    def collect(self, futures: Mapping[str, Future[Reply]], started: float) -> list[Heard]:
        """What each has said by its time limit, counted from `started` (time.monotonic)."""
        return [self._heard(name, future, started) for name, future in futures.items()]

    def close(self) -> None:
        with self._guard:
            for other in self._others.values():
                other.close()
            self._others.clear()

    def _heard(self, name: str, future: Future[Reply], started: float) -> Heard:
        member = self.declared[name]
        limit = started + member.time_limit_ms / 1000
        reply, reason, quoted = None, "", ""
        try:
            reply = future.result(max(0.0, limit + GRACE_SECONDS - time.monotonic()))
        except FutureTimeout:
            reason = f"no answer within {member.time_limit_ms} ms"
        except MemberFailed as failure:
            reason, quoted = str(failure), failure.quoted
        except Exception as error:  # noqa: BLE001 - any failure of a member is its own alone, and is reported
            reason, quoted = f"asking it failed ({type(error).__name__})", str(error)
        took = round((time.monotonic() - started) * 1000, 3)
        with self._guard:
            self.asked[name] += 1
            self.failed[name] += reply is None
            so_far = f"{self.failed[name]} of {self.asked[name]} times since the store was opened"
        if reply is None:
            health = LegHealth(leg=name, answered=False, took_ms=took, reason=f"{reason[:LONGEST_REASON]} ({so_far})")
            return Heard(name, member, None, health, " ".join(clean(quoted[:LONGEST_QUOTED]).split()))
        return Heard(name, member, reply, LegHealth(leg=name, answered=True, candidates=len(reply.hits), took_ms=took))

    def _work(
        self, future: Future[Reply], name: str, member: Member, asked: Asked, open_other: Callable[[Member], Other]
    ) -> None:
        end = time.monotonic() + member.time_limit_ms / 1000
        try:
            if not self._places[name].acquire(timeout=member.time_limit_ms / 1000):
                raise MemberFailed(f"{AT_ONCE} others are asking it already")
            try:
                raw = self._ask(name, member, open_other)(member, asked, end)
                future.set_result(reply_of(raw, member, self._names[name]))
            finally:
                self._places[name].release()
        except Exception as error:  # noqa: BLE001 - handed to whoever asked, and shown there
            future.set_exception(error)

    def _ask(self, name: str, member: Member, open_other: Callable[[Member], Other]) -> Ask:
        if member.kind != "trivet":
            return _way(member.kind)
        with self._guard:
            if name not in self._others:
                self._others[name] = open_other(member)
            return self._others[name].ask


def _way(kind: Kind) -> Ask:
    """What speaks with a kind is loaded when the first of that kind is asked: most recalls ask nobody."""
    if kind == "command":
        from trivet.search.systems.command import ask_command as ask
    elif kind == "http":
        from trivet.search.systems.http import ask_http as ask
    else:
        from trivet.search.systems.mcp import ask_mcp as ask
    return ask
