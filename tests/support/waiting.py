"""Waits with a limit, so that a hang fails with the name of what did not happen."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sized
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, TypeVar

T = TypeVar("T")
# Far above what anything takes on a busy machine; it only stops tests that would hang.
LIMIT_SECONDS = 120.0
LOOK_SECONDS = 0.005


def ended(running: threading.Thread | BaseProcess) -> None:
    running.join(LIMIT_SECONDS)
    assert not running.is_alive(), f"{running.name} has not ended after {LIMIT_SECONDS:g} s"


def happened(event: threading.Event) -> None:
    assert event.wait(LIMIT_SECONDS), (
        f"the awaited event has not happened after {LIMIT_SECONDS:g} s"
    )


def grown(listed: Sized, count: int) -> None:
    """Wait until other threads have added this many items."""
    until(lambda: len(listed) >= count)


def until(so: Callable[[], bool]) -> None:
    """Wait until the condition holds, with pauses so that other threads are not slowed down."""
    last, pause = time.monotonic() + LIMIT_SECONDS, threading.Event()
    while not so():
        assert time.monotonic() < last, (
            f"the awaited condition does not hold after {LIMIT_SECONDS:g} s"
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
    """Run the work in this many threads with numbers from 0.

    Raise the threads' errors in the test.
    """
    with ThreadPoolExecutor(count) as pool:
        for future in [pool.submit(work, number) for number in range(count)]:
            result_of(future)
