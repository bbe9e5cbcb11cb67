"""Whether the work of reading a text grows faster than the text, measured so that a busy machine does not matter."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

Read = Callable[[str], object]
SHORT, LONG = 256, 1024
# Four times the text is four times the work if it is linear, and sixteen times if it is quadratic.
SUSPICIOUS = 7.5


class NeverEnds(Exception):
    pass


@contextmanager
def ended(seconds: float) -> Iterator[None]:
    """Ends what would never end, after so many seconds of the processor; patterns look for signals while they match."""

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
    """Of the processor's time, which a busy machine does not stretch."""
    start = time.thread_time()
    read(text)
    return time.thread_time() - start


def grows_too_fast(read: Read, of_length: Callable[[int], str]) -> bool:
    """Measured once; only what looks suspicious is measured again, longer and several times."""
    once = work(read, of_length(LONG))
    if once <= TRIFLE or once <= SUSPICIOUS * work(read, of_length(SHORT)):
        return False
    for short, long in ((SHORT, LONG), (LONG, 4 * LONG)):
        longer = min(work(read, of_length(long)) for _ in range(3))
        if longer <= SUSPICIOUS * min(work(read, of_length(short)) for _ in range(3)):
            return False
    return True


def _trifle() -> float:
    """Work that needs no second look: four times that of a simple pattern on a harmless text of the same length.

    Going over 1,024 characters from each of them is twice as much at least.
    """
    words = re.compile(r"\w+")
    text = "It rained all day, and the bees stayed at home. " * (LONG // 48)
    return 4 * min(work(lambda text: words.sub("", text), text) for _ in range(20))


TRIFLE = _trifle()
