"""What a thread borrows for a piece of work goes back at its end, so that the next thread can have it.

A server has a thread for each request under way, and any of them may be asked about any tenant: if each kept a
connection to the file of every tenant it has worked for, those would take most of the server's memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_work = threading.local()


@contextmanager
def borrowing() -> Iterator[None]:
    """A piece of work of this thread. One within another is part of that."""
    if _debts() is not None:
        yield
        return
    debts: list[Callable[[], None]] = []
    _work.debts = debts
    try:
        yield
    finally:
        _work.debts = None
        for give_back in debts:
            give_back()


def at_end_of_work(give_back: Callable[[], None]) -> None:
    """Outside a piece of work a thread keeps what it has."""
    debts = _debts()
    if debts is not None:
        debts.append(give_back)


def _debts() -> list[Callable[[], None]] | None:
    debts: list[Callable[[], None]] | None = getattr(_work, "debts", None)
    return debts
