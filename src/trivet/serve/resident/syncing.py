"""The resident process's part in sync: what is written here is sent at once, what changes there comes at once.

Two threads: one exchanges when this store or the server has news, one waits for the server's. While the server is away
they try again after a random time that doubles (full jitter), so that many laptops do not come back in step. What
speaks HTTP is loaded only where the store follows a server.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from trivet.errors import TrivetError
from trivet.sync.lease import Lease
from trivet.trivet import Trivet

if TYPE_CHECKING:
    from trivet.sync.client import HttpServer

logger = logging.getLogger("trivet.serve.resident")

# How often it is looked whether something was written here: a read of microseconds.
LOOK_SECONDS = 0.25
# A store that follows nobody may join somebody later; another process that holds the lease may end.
JOIN_SECONDS = 5.0
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 300.0

Using = Callable[[], AbstractContextManager[Trivet]]


class Syncing:
    """Follows the server for one store, as long as the process lives."""

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
                pause = JOIN_SECONDS
            except TrivetError as error:
                self._failures += 1
                pause = random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(self._failures, 10)))
                logger.warning("Sync rests for %.0f s: %s", pause, error)
            self._ended.wait(pause)

    def _follow(self) -> None:
        """Until the store follows nobody, another process has the lease, or something goes wrong."""
        with self._using() as memory:
            if not memory.engine.follows:
                return
            lease = Lease.of(memory.engine.settings.path)
        if lease is None:
            return
        with lease:
            self._exchange_for_ever()

    def _exchange_for_ever(self) -> None:
        from trivet.sync.laptop import Laptop
        from trivet.sync.round import exchange
        from trivet.sync.verbs import connect

        with self._using() as memory:
            server = connect(memory.engine)
        waiting = threading.Thread(target=self._wait_for_news, args=(server,), name="trivet-sync-news", daemon=True)
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
                    feed.hide_if_away(memory.engine.settings.sync_hide_days)
                self._news.wait(LOOK_SECONDS)
        finally:
            server.close()

    def _wait_for_news(self, server: HttpServer) -> None:
        """Ends when the exchange fails and its connection is closed, as it does when the server is away."""
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
