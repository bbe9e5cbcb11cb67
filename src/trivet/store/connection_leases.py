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
def lease_scope() -> Iterator[None]:
    """A piece of work of this thread. One within another is part of that."""
    if _pending_releases() is not None:
        yield
        return
    pending_releases: list[Callable[[], None]] = []
    _work.pending_releases = pending_releases
    try:
        yield
    finally:
        _work.pending_releases = None
        for release in pending_releases:
            release()


def release_at_scope_end(release: Callable[[], None]) -> None:
    """Outside a piece of work a thread keeps what it has."""
    pending_releases = _pending_releases()
    if pending_releases is not None:
        pending_releases.append(release)


def _pending_releases() -> list[Callable[[], None]] | None:
    pending_releases: list[Callable[[], None]] | None = getattr(_work, "pending_releases", None)
    return pending_releases
