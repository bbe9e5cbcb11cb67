"""Limits on request rates, worker threads and idle connections.

Three thread pools ("lanes") keep writes and authentication from waiting behind slow recalls.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
import uuid
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Literal, TypeVar

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from trivet.client.problems import MEDIA_TYPE
from trivet.common.bounded_cache import MIB, BoundedCache
from trivet.serve.http.errors import Busy, Malformed, WorkTimedOut, problem_response
from trivet.store.relational.database import lease_scope

# About 20,000 keys. An evicted bucket counts as full.
BUCKETS_BYTES = 8 * MIB


class RateLimiter:
    """Token buckets by name, for the event loop's thread only."""

    def __init__(
        self, per_minute: int, burst: int, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._per_second = per_minute / 60
        self._burst = float(burst)
        self._clock = clock
        self._buckets: BoundedCache[str, tuple[float, float]] = BoundedCache(BUCKETS_BYTES)

    def take(self, name: str) -> int:
        """Take a token and return 0, or return the seconds to wait for one."""
        tokens, wait = self._available_tokens(name), self.wait(name)
        self._buckets.put(name, (tokens if wait else tokens - 1, self._clock()))
        return wait

    def wait(self, name: str) -> int:
        tokens = self._available_tokens(name)
        return 0 if tokens >= 1 else max(1, math.ceil((1 - tokens) / self._per_second))

    def _available_tokens(self, name: str) -> float:
        now = self._clock()
        tokens, at = self._buckets.get(name) or (self._burst, now)
        return min(self._burst, tokens + (now - at) * self._per_second)


T = TypeVar("T")
# "door" authenticates and checks health: short, unless a tenant must be opened.
Lane = Literal["read", "write", "door"]
AUTH_THREADS = 4
logger = logging.getLogger("trivet.serve.http")


class ThreadPool:
    """Worker threads by lane; leases taken during a task end with it."""

    def __init__(self, threads: int, seconds: float) -> None:
        sizes: dict[Lane, int] = {"read": threads, "write": threads, "door": AUTH_THREADS}
        self._lanes = {
            lane: ThreadPoolExecutor(size, f"trivet-http-{lane}") for lane, size in sizes.items()
        }
        self._seconds = seconds
        self._running: set[Future[Any]] = set()

    async def run(self, function: Callable[[], T], lane: Lane = "read") -> T:
        """Run the function in a lane; once started, it always finishes.

        Raises:
            Busy: No thread became free in time; nothing was done.
            WorkTimedOut: The work has started but not finished.
        """
        work = self._lanes[lane].submit(_run_and_release, function)
        self._running.add(work)
        work.add_done_callback(self._running.discard)
        answer = asyncio.wrap_future(work)
        await asyncio.wait({answer}, timeout=self._seconds)
        if answer.done():
            return answer.result()
        if work.cancel():
            raise Busy(
                f"The request waited {self._seconds:g} s for a free thread. Nothing was done; "
                "try again later."
            )
        work.add_done_callback(_log_late_failure)
        raise WorkTimedOut(
            f"The work is not finished after {self._seconds:g} s. The server will finish it; "
            "check later, or send the request again with the same Idempotency-Key."
        )

    def close(self, seconds: float) -> bool:
        """Wait for accepted work; return False on timeout."""
        for threads in self._lanes.values():
            threads.shutdown(wait=False)
        return not wait(set(self._running), timeout=seconds).not_done


def _run_and_release(function: Callable[[], T]) -> T:
    with lease_scope():
        return function()


def _log_late_failure(work: Future[T]) -> None:
    error = work.exception()
    if error is not None:
        logger.warning("Work that outlived its request failed: %s", type(error).__name__)


# Seconds for the headers, a few kilobytes.
HEAD_SECONDS = 10.0
# Each costs a file descriptor and memory. Beyond this, idle ones close.
MAX_CONNECTIONS = 2_000
# Closed per sweep, so that a flood does not sort the idle ones for each connection.
IDLE_CLOSED_AT_ONCE = 50
# Seconds to keep the rest of an answer that the client does not read.
UNREAD_SECONDS = 60.0


class LimitedConnection(H11Protocol):
    """uvicorn's h11 connection with a time limit on every wait."""

    _limit: asyncio.TimerHandle | None = None
    _idle_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        if len(self.connections) > MAX_CONNECTIONS and not self._make_room():
            transport.abort()
            return
        self._limit = self.loop.call_later(HEAD_SECONDS, self._close_if_idle)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._busy():
            self._cancel_timeout()
        elif self._limit is None:
            self._limit = self.loop.call_later(HEAD_SECONDS, self._close_if_idle)

    def on_response_complete(self) -> None:
        self._idle_since = self.loop.time()
        super().on_response_complete()
        if self.transport.get_write_buffer_size():
            self.loop.call_later(UNREAD_SECONDS, self._close_if_unread)

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_timeout()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        answer = problem_response(Malformed("This is not a valid HTTP request."), str(uuid.uuid4()))
        body = bytes(answer.body)
        headers: list[tuple[bytes, bytes]] = [
            (b"content-type", MEDIA_TYPE.encode()),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        events: list[Any] = [
            h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
            h11.Data(data=body),
            h11.EndOfMessage(),
        ]
        for event in events:
            self.transport.write(self.conn.send(event) or b"")
        self.transport.close()

    def _busy(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    @property
    def _address(self) -> str:
        return self.client[0] if self.client else ""

    def _make_room(self) -> bool:
        """Close the longest-idle connections of the address with the most."""
        idle = [
            one
            for one in self.connections
            if isinstance(one, LimitedConnection) and one is not self and not one._busy()
        ]
        if not idle:
            return False
        [(greedy, _)] = Counter(one._address for one in idle).most_common(1)
        theirs = sorted(
            (one for one in idle if one._address == greedy), key=lambda one: one._idle_since
        )
        for one in theirs[:IDLE_CLOSED_AT_ONCE]:
            # At once: its connection_lost runs only after new connections have arrived.
            self.connections.discard(one)
            one.transport.abort()
        return True

    def _cancel_timeout(self) -> None:
        if self._limit is not None:
            self._limit.cancel()
            self._limit = None

    def _close_if_idle(self) -> None:
        self._limit = None
        if not self._busy():
            self.transport.abort()

    def _close_if_unread(self) -> None:
        if self.transport.get_write_buffer_size():
            self.transport.abort()
