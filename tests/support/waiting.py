"""Waiting with a limit: what would hang fails, and says what did not come."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

T = TypeVar("T")
# Far more than anything takes on a busy machine: it is there to end a test that would never end.
LIMIT_SECONDS = 120.0
LOOK_SECONDS = 0.005


def ended(running: threading.Thread | BaseProcess) -> None:
    running.join(LIMIT_SECONDS)
    assert not running.is_alive(), f"{running.name} has not ended after {LIMIT_SECONDS:g} s"


def happened(event: threading.Event) -> None:
    assert event.wait(LIMIT_SECONDS), (
        f"what the test waits for has not happened after {LIMIT_SECONDS:g} s"
    )


def grown(listed: Sized, count: int) -> None:
    """Until other threads have put so many into it."""
    until(lambda: len(listed) >= count)


def until(so: Callable[[], bool]) -> None:
    """Until it is so. It looks now and then: to look all the time would hold up those who do it."""
    last, pause = time.monotonic() + LIMIT_SECONDS, threading.Event()
    while not so():
        assert time.monotonic() < last, (
            f"what the test waits for is not so after {LIMIT_SECONDS:g} s"
        )
        pause.wait(LOOK_SECONDS)


def taken(semaphore: threading.Semaphore) -> None:
    assert semaphore.acquire(timeout=LIMIT_SECONDS), (
        f"nothing was let go within {LIMIT_SECONDS:g} s"
    )


def heard(pipe: Connection) -> Any:
    assert pipe.poll(LIMIT_SECONDS), f"the other process has said nothing for {LIMIT_SECONDS:g} s"
    return pipe.recv()


def result_of(future: Future[T]) -> T:
    try:
        return future.result(LIMIT_SECONDS)
    except TimeoutError as error:
        raise AssertionError(
            f"no result, or a time limit of its own, within {LIMIT_SECONDS:g} s"
        ) from error


def in_threads(count: int, work: Callable[[int], object]) -> None:
    """Does the work, with numbers from 0, in so many threads at once. What one of them raises, the test raises."""
    with ThreadPoolExecutor(count) as pool:
        for future in [pool.submit(work, number) for number in range(count)]:
            result_of(future)
