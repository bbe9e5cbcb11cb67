"""Measure whether reading time grows faster than the text, independent of machine load."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Read = Callable[[str], object]
SHORT, LONG = 256, 1024
# Four times the text is four times the work if linear, and sixteen times if quadratic.
SUSPICIOUS = 7.5


class NeverEnds(Exception):
    pass


@contextmanager
def ended(seconds: float) -> Iterator[None]:
    """Stop code after this much processor time.

    Regular expressions check for signals during matches.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        raise NeverEnds

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def work(read: Read, text: str) -> float:
    """Return processor time, which machine load does not stretch."""
    start = time.thread_time()
    read(text)
    return time.thread_time() - start


def grows_too_fast(read: Read, of_length: Callable[[int], str]) -> bool:
    """Measure once, and measure again longer and several times only if the result is suspicious."""
    once = work(read, of_length(LONG))
    if once <= TRIFLE or once <= SUSPICIOUS * work(read, of_length(SHORT)):
        return False
    for short, long in ((SHORT, LONG), (LONG, 4 * LONG)):
        longer = min(work(read, of_length(long)) for _ in range(3))
        if longer <= SUSPICIOUS * min(work(read, of_length(short)) for _ in range(3)):
            return False
    return True


def _trifle() -> float:
    """Return the work that needs no second measurement.

    It is four times that of a simple pattern on a harmless text of the same length. Scanning 1,024
    characters from each position costs at least twice as much.
    """
    words = re.compile(r"\w+")
    text = "It rained all day, and the bees stayed at home. " * (LONG // 48)
    return 4 * min(work(lambda text: words.sub("", text), text) for _ in range(20))


TRIFLE = _trifle()
