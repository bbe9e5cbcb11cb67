"""`AsyncTrivet`: the verbs of `Trivet` for programs with an event loop.

A local store runs every call in a worker thread, so no call blocks the loop.
"""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from itertools import islice
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import anyio
import msgspec
from anyio.to_thread import run_sync

from trivet.contract import Remember, Request
from trivet.errors import StoreError
from trivet.methods import AsyncMethods
from trivet.settings import Settings, load_settings
from trivet.settings.locations import is_server
from trivet.trivet import Trivet
from trivet.types import Imported, Progress, Remembered

if TYPE_CHECKING:
    from trivet.client.async_connection import AsyncConnection


T = TypeVar("T")

# Each thread holds a connection to the store.
MAX_CONCURRENT_CALLS = 8
# Export lines fetched per thread hop: the hop costs more than producing a line.
EXPORT_BATCH_LINES = 100


class AsyncStore:
    """The local counterpart of `AsyncConnection`."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._memory: Trivet | None = None
        self._closed = False
        self._open_lock = threading.Lock()
        self._limiter = anyio.CapacityLimiter(MAX_CONCURRENT_CALLS)

    async def perform(self, request: Request[T]) -> T:
        return await self._run(lambda memory: memory.perform(request))

    async def remember_many(
        self, memories: Iterable[Mapping[str, Any] | Remember]
    ) -> list[Remembered]:
        return await self._run(lambda memory: memory.remember_many(memories))

    async def diff(self, id: str, older: int, newer: int, reveal: bool) -> str:
        return await self._run(lambda memory: memory.diff(id, older, newer, reveal=reveal))

    async def import_(self, lines: Iterable[str], progress: Progress | None) -> Imported:
        return await self._run(lambda memory: memory.import_(lines, progress=progress))

    async def export(self, include_sensitive: bool) -> AsyncIterator[str]:
        lines = await self._run(lambda memory: memory.export(include_sensitive=include_sensitive))
        while batch := await self._run(lambda _: list(islice(lines, EXPORT_BATCH_LINES))):
            for line in batch:
                yield line

    async def close(self) -> None:
        """Close in a worker thread, because closing waits for the background worker."""
        await run_sync(self._close, limiter=self._limiter)

    async def _run(self, function: Callable[[Trivet], T]) -> T:
        return await run_sync(lambda: function(self._open_memory()), limiter=self._limiter)

    def _open_memory(self) -> Trivet:
        with self._open_lock:
            if self._closed:
                raise StoreError("The store is closed. Open it again with AsyncTrivet.open().")
            if self._memory is None:
                self._memory = Trivet.open(settings=self.settings)
            return self._memory

    def _close(self) -> None:
        with self._open_lock:
            self._closed = True
            if self._memory is not None:
                self._memory.close()


class AsyncTrivet(AsyncMethods):
    """A memory for programs with an event loop: `async with AsyncTrivet.open() as memory: ...`."""

    def __init__(self, backend: AsyncConnection | AsyncStore) -> None:
        self._backend = backend

    @classmethod
    def open(
        cls,
        path: str | PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        create: bool = True,
        **overrides: Any,
    ) -> Self:
        """Return a memory, opened by the first call; the arguments are those of `Trivet.open`."""
        named = None if path is None else str(path)
        settings = (
            load_settings(path=named, **overrides)
            if settings is None
            else _with_overrides(settings, named, overrides)
        )
        if is_server(settings.path):
            from trivet.client.async_connection import AsyncConnection

            return cls(AsyncConnection(settings))

        if not create:
            from trivet.settings.locations import check_exists

            check_exists(settings)
        return cls(AsyncStore(settings))

    @property
    def settings(self) -> Settings:
        return self._backend.settings

    @property
    def server(self) -> str | None:
        """The server's address; None for a local store."""
        return self.settings.path if is_server(self.settings.path) else None

    async def perform(self, request: Request[T]) -> T:
        """Perform a checked request of the contract."""
        return await self._backend.perform(request)

    async def remember_many(
        self, memories: Iterable[Mapping[str, Any] | Remember]
    ) -> list[Remembered]:
        """Store several memories, each a mapping of `remember`'s arguments, in one transaction."""
        return await self._backend.remember_many(memories)

    async def diff(self, id: str, older: int, newer: int, *, reveal: bool = False) -> str:
        """Return the changes between two revisions as a unified diff."""
        return await self._backend.diff(id, older, newer, reveal)

    def export(self, *, include_sensitive: bool = False) -> AsyncIterator[str]:
        """Yield the whole store as lines of JSON: header, memories with history, links."""
        return self._backend.export(include_sensitive)

    async def import_(self, lines: Iterable[str], *, progress: Progress | None = None) -> Imported:
        """Import lines of an export, or plain memories with at least `content`; never deletes."""
        return await self._backend.import_(lines, progress)

    async def close(self) -> None:
        await self._backend.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


def _with_overrides(settings: Settings, path: str | None, overrides: dict[str, Any]) -> Settings:
    return msgspec.structs.replace(
        settings, **overrides, **({} if path is None else {"path": path})
    )
