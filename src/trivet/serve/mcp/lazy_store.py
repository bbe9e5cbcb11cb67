"""A store that is opened by the first call, so that a server can introduce itself before anything heavy is loaded."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from trivet.serve.resident.connect import open_memory
from trivet.settings import load_settings
from trivet.settings.existing_store import missing_store, nearest_store
from trivet.trivet import Trivet

logger = logging.getLogger("trivet.serve")

T = TypeVar("T")

# Enough for a client that asks several things at once. A fixed set of threads, because the store keeps a
# connection for each thread it ever saw.
CALLS_AT_ONCE = 8
# Beside those that read, so that none waits behind a recall that hangs. The store writes one at a time.
WRITES_AT_ONCE = 2


class LazyStore:
    """Runs calls in threads, so that none holds up the event loop. An open that failed is tried again by the next."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._memory: Trivet | None = None
        self._opening = threading.Lock()
        self._threads = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="trivet-call")
        self._writing = ThreadPoolExecutor(WRITES_AT_ONCE, thread_name_prefix="trivet-write")

    async def run(self, function: Callable[[Trivet], T], writes: bool = False) -> T:
        threads = self._writing if writes else self._threads
        return await asyncio.get_running_loop().run_in_executor(threads, self._apply, function)

    def close(self) -> None:
        """Waits for the calls under way, then for the worker."""
        for threads in (self._threads, self._writing):
            threads.shutdown(wait=True, cancel_futures=True)
        if self._memory is not None:
            self._memory.close()

    def _apply(self, function: Callable[[Trivet], T]) -> T:
        with self._opening:
            if self._memory is None:
                self._memory = self._opened()
        return function(self._memory)

    def _opened(self) -> Trivet:
        """An agent reads and writes, so a store that is not there is made. Beside another store, the log says so: the
        path may be mistyped."""
        settings = load_settings(path=self._path)
        if (missing := missing_store(settings)) and nearest_store(Path(settings.path).expanduser()):
            logger.warning("%s", missing)
        return open_memory(self._path, model_soon=True)
