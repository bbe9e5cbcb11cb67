"""The threads that do the work, so that none holds up the event loop, and how long a caller waits for it.

There are three lanes, so that no write waits behind recalls that hang, and nobody at the door behind either.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Literal, TypeVar

from trivet.serve.http.errors import Busy, TookTooLong
from trivet.store.borrowing import borrowing

T = TypeVar("T")
# At the door it is looked who comes, and whether the store can be reached: moments, unless a tenant must be opened.
Lane = Literal["read", "write", "door"]
DOOR_THREADS = 4
logger = logging.getLogger("trivet.serve.http")


class ThreadPool:
    """A fixed set of threads. What they borrow for a piece of work, such as a tenant's connection, goes back then."""

    def __init__(self, threads: int, seconds: float) -> None:
        sizes: dict[Lane, int] = {"read": threads, "write": threads, "door": DOOR_THREADS}
        self._lanes = {lane: ThreadPoolExecutor(size, f"trivet-http-{lane}") for lane, size in sizes.items()}
        self._seconds = seconds
        self._running: set[Future[Any]] = set()

    async def run(self, function: Callable[[], T], lane: Lane = "read") -> T:
        """What the function returns. Work that began is finished, also when its caller has stopped waiting."""
        work = self._lanes[lane].submit(_done, function)
        self._running.add(work)
        work.add_done_callback(self._running.discard)
        answer = asyncio.wrap_future(work)
        await asyncio.wait({answer}, timeout=self._seconds)
        if answer.done():
            return answer.result()
        if work.cancel():
            raise Busy(f"The request waited {self._seconds:g} s for its turn. Nothing was done; try again later.")
        work.add_done_callback(_note)
        raise TookTooLong(
            f"The work is not done after {self._seconds:g} s. It goes on and will be finished; look whether it was, "
            "or ask again with the same Idempotency-Key."
        )

    def close(self, seconds: float) -> bool:
        """Waits for the work that was accepted. False where some of it is not done by then."""
        for threads in self._lanes.values():
            threads.shutdown(wait=False)
        return not wait(set(self._running), timeout=seconds).not_done


def _done(function: Callable[[], T]) -> T:
    with borrowing():
        return function()


def _note(work: Future[T]) -> None:
    error = work.exception()
    if error is not None:
        logger.warning("Work that outlasted its request failed: %s", type(error).__name__)
