"""A store of one's own for programs with an event loop: every call runs in a thread, so that none holds up the loop."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from itertools import islice
from typing import Any, TypeVar

import anyio
from anyio.to_thread import run_sync

from trivet.contract import Remember, Request
from trivet.errors import StoreError
from trivet.settings import Settings
from trivet.trivet import Trivet
from trivet.types import Imported, Progress, Remembered

T = TypeVar("T")

# Enough for a program that asks several things at once; each thread has a connection to the store.
CALLS_AT_ONCE = 8
# Lines of an export that are fetched in one go: a step into a thread costs more than to make a line.
LINES_AT_ONCE = 100


class AsyncStore:
    """Does what AsyncConnection does, on a file or a database. It is opened by the first call, in its thread."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._memory: Trivet | None = None
        self._closed = False
        self._opening = threading.Lock()
        self._limiter = anyio.CapacityLimiter(CALLS_AT_ONCE)

    async def perform(self, request: Request[T]) -> T:
        return await self._run(lambda memory: memory.perform(request))

    async def remember_many(self, memories: Iterable[Mapping[str, Any] | Remember]) -> list[Remembered]:
        return await self._run(lambda memory: memory.remember_many(memories))

    async def diff(self, id: str, older: int, newer: int, reveal: bool) -> str:
        return await self._run(lambda memory: memory.diff(id, older, newer, reveal=reveal))

    async def import_(self, lines: Iterable[str], progress: Progress | None) -> Imported:
        return await self._run(lambda memory: memory.import_(lines, progress=progress))

    async def export(self, include_sensitive: bool) -> AsyncIterator[str]:
        lines = await self._run(lambda memory: memory.export(include_sensitive=include_sensitive))
        while batch := await self._run(lambda _: list(islice(lines, LINES_AT_ONCE))):
            for line in batch:
                yield line

    async def close(self) -> None:
        """Waits for the worker too, away from the loop."""
        await run_sync(self._close, limiter=self._limiter)

    async def _run(self, function: Callable[[Trivet], T]) -> T:
        return await run_sync(lambda: function(self._opened()), limiter=self._limiter)

    def _opened(self) -> Trivet:
        with self._opening:
            if self._closed:
                raise StoreError("The store is closed. Open it again with AsyncTrivet.open().")
            if self._memory is None:
                self._memory = Trivet.open(settings=self.settings)
            return self._memory

    def _close(self) -> None:
        with self._opening:
            self._closed = True
            if self._memory is not None:
                self._memory.close()
