"""A server's memory for programs with an event loop: the verbs of `Trivet`, to be awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from trivet.contract import Remember, Request
from trivet.errors import InvalidInput
from trivet.methods import AsyncMethods
from trivet.settings import Settings, load_settings
from trivet.settings.address import is_server
from trivet.types import Imported, Progress, Remembered

if TYPE_CHECKING:
    from trivet.client.async_connection import AsyncConnection

T = TypeVar("T")


class AsyncTrivet(AsyncMethods):
    """A memory on a server. `async with AsyncTrivet.open("https://memory.example.org", key=...) as memory: ...`"""

    def __init__(self, server: AsyncConnection) -> None:
        self._server = server

    @classmethod
    def open(cls, path: str | None = None, *, settings: Settings | None = None, **overrides: Any) -> Self:
        """Connects to the server at `path`, or the configured one, when it is first asked something."""
        settings = load_settings(path=path, **overrides) if settings is None else _changed(settings, path, overrides)
        if not is_server(settings.path):
            raise InvalidInput(
                "AsyncTrivet speaks to a server: give its address, such as https://memory.example.org. A store of "
                "one's own is opened with Trivet.open(); asyncio.to_thread keeps it from holding up the event loop."
            )
        from trivet.client.async_connection import AsyncConnection

        return cls(AsyncConnection(settings))

    @property
    def settings(self) -> Settings:
        return self._server.settings

    @property
    def server(self) -> str:
        """The address of the server."""
        return self._server.settings.path

    async def perform(self, request: Request[T]) -> T:
        return await self._server.perform(request)

    async def remember_many(self, memories: Iterable[Mapping[str, Any] | Remember]) -> list[Remembered]:
        """Store several memories in one transaction; each is a mapping of `remember`'s arguments."""
        return await self._server.remember_many(memories)

    async def diff(self, id: str, older: int, newer: int, *, reveal: bool = False) -> str:
        """What changed between two revisions, as a unified diff."""
        return await self._server.diff(id, older, newer, reveal)

    def export(self, *, include_sensitive: bool = False) -> AsyncIterator[str]:
        """The whole store as lines of JSON: header, memories with their history, links."""
        return self._server.export(include_sensitive)

    async def import_(self, lines: Iterable[str], *, progress: Progress | None = None) -> Imported:
        """Take in lines of an export, or plain memories with at least a `content`. Nothing here is deleted."""
        return await self._server.import_(lines, progress)

    async def close(self) -> None:
        await self._server.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _changed(settings: Settings, path: str | None, overrides: dict[str, Any]) -> Settings:
    return msgspec.structs.replace(settings, **overrides, **({} if path is None else {"path": path}))
