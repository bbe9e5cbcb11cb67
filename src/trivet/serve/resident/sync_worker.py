"""Background sync in the resident process: one thread exchanges, one waits for the server.

One process at a time follows for a file; `sync now` may exchange too.
"""

from __future__ import annotations

import logging
import os
import random
import sys
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self

from trivet.errors import TrivetError
from trivet.trivet import Trivet

if TYPE_CHECKING:
    from trivet.sync.exchange import HttpServer


logger = logging.getLogger("trivet.serve.resident")

# A check for local writes takes microseconds.
POLL_SECONDS = 0.25
# The store may join a server, or the holder of the lease may end.
FOLLOW_CHECK_SECONDS = 5.0
MIN_BACKOFF_SECONDS = 1.0
MAX_BACKOFF_SECONDS = 300.0

Using = Callable[[], AbstractContextManager[Trivet]]


class SyncWorker:
    def __init__(self, using: Using) -> None:
        self._using = using
        self._ended = threading.Event()
        self._news = threading.Event()
        self._failures = 0
        self._exchanging = threading.Thread(target=self._run, name="trivet-sync", daemon=True)

    def start(self) -> None:
        self._exchanging.start()

    def stop(self) -> None:
        self._ended.set()
        self._news.set()

    def _run(self) -> None:
        while not self._ended.is_set():
            try:
                self._follow()
                pause = FOLLOW_CHECK_SECONDS
            except TrivetError as error:
                self._failures += 1
                pause = random.uniform(
                    0,
                    min(MAX_BACKOFF_SECONDS, MIN_BACKOFF_SECONDS * 2.0 ** min(self._failures, 10)),
                )
                logger.warning("Sync failed; next attempt in %.0f s: %s", pause, error)
            self._ended.wait(pause)

    def _follow(self) -> None:
        with self._using() as memory:
            if not memory.engine.follows:
                return
            lease = FollowerLease.of(memory.engine.settings.path)
        if lease is None:
            return
        with lease:
            self._exchange_until_stopped()

    def _exchange_until_stopped(self) -> None:
        from trivet.sync.exchange import exchange
        from trivet.sync.laptop import Laptop
        from trivet.sync.verbs import connect

        with self._using() as memory:
            server = connect(memory.engine)
        waiting = threading.Thread(
            target=self._wait_for_news, args=(server,), name="trivet-sync-news", daemon=True
        )
        waiting.start()
        try:
            known = -1
            while not self._ended.is_set():
                with self._using() as memory:
                    if not memory.engine.follows:
                        return
                    feed = memory.engine.store.feed
                    if self._news.is_set() or feed.last_change() != known:
                        self._news.clear()
                        exchange(Laptop(memory.engine), server)
                        known = feed.last_change()
                        self._failures = 0
                    feed.hide_shared_if_offline(memory.engine.settings.sync_hide_days)
                self._news.wait(POLL_SECONDS)
        finally:
            server.close()

    def _wait_for_news(self, server: HttpServer) -> None:
        known = ""
        while not self._ended.is_set():
            try:
                latest = server.wait(known)
            except (TrivetError, RuntimeError):  # a closed client raises the latter
                self._news.set()
                return
            if latest != known:
                known = latest
                self._news.set()


# Windows has no resident process.
if sys.platform != "win32":
    import fcntl


class FollowerLease:
    """A lock on a file next to the store, which ends with its process."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @classmethod
    def of(cls, path: str) -> Self | None:
        if sys.platform == "win32":
            return None
        handle = os.open(
            f"{Path(path).expanduser()}.sync", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600
        )
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(handle)
            return None
        return cls(handle)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._handle)
