"""An interruption that is not lost."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event
from types import FrameType


@contextmanager
def noted_interrupt() -> Iterator[Event]:
    """Set once the user interrupts, besides the exception: what is raised while Python tidies up, it drops."""
    stop, before = Event(), signal.getsignal(signal.SIGINT)
    if not callable(before):  # it is ignored, as for a command in the background
        yield stop
        return

    def note(number: int, frame: FrameType | None) -> None:
        stop.set()
        before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield stop
    finally:
        signal.signal(signal.SIGINT, before)
