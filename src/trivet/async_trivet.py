"""A memory for programs with an event loop: the verbs of `Trivet`, to be awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TypeVar

import msgspec

from trivet.contract import Remember, Request
from trivet.methods import AsyncMethods
from trivet.settings import Settings, load_settings
from trivet.settings.address import is_server
from trivet.types import Imported, Progress, Remembered

if TYPE_CHECKING:
    from trivet.async_store import AsyncStore
    from trivet.client.async_connection import AsyncConnection

T = TypeVar("T")


class AsyncTrivet(AsyncMethods):
    """A memory for programs with an event loop. `async with AsyncTrivet.open("memory.db") as memory: ...`

    The store is a file or a database, asked in threads, or on a server, such as https://memory.example.org.
    """

    def __init__(self, behind: AsyncConnection | AsyncStore) -> None:
        self._behind = behind

    @classmethod
    def open(
        cls,
        path: str | PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        create: bool = True,
        **overrides: Any,
    ) -> Self:
        """As `Trivet.open`: the store at `path`, or the configured one. It is opened by the first call."""
        named = None if path is None else str(path)
        settings = load_settings(path=named, **overrides) if settings is None else _changed(settings, named, overrides)
        if is_server(settings.path):
            from trivet.client.async_connection import AsyncConnection

            return cls(AsyncConnection(settings))
        from trivet.async_store import AsyncStore

        if not create:
            from trivet.settings.existing_store import check_exists

            check_exists(settings)
        return cls(AsyncStore(settings))

    @property
    def settings(self) -> Settings:
        return self._behind.settings

    @property
    def server(self) -> str | None:
        """The address of the server that this object speaks to; None for a store of one's own."""
        return self.settings.path if is_server(self.settings.path) else None

    async def perform(self, request: Request[T]) -> T:
        return await self._behind.perform(request)

    async def remember_many(self, memories: Iterable[Mapping[str, Any] | Remember]) -> list[Remembered]:
        """Store several memories in one transaction; each is a mapping of `remember`'s arguments."""
        return await self._behind.remember_many(memories)

    async def diff(self, id: str, older: int, newer: int, *, reveal: bool = False) -> str:
        """What changed between two revisions, as a unified diff."""
        return await self._behind.diff(id, older, newer, reveal)

    def export(self, *, include_sensitive: bool = False) -> AsyncIterator[str]:
        """The whole store as lines of JSON: header, memories with their history, links."""
        return self._behind.export(include_sensitive)

    async def import_(self, lines: Iterable[str], *, progress: Progress | None = None) -> Imported:
        """Take in lines of an export, or plain memories with at least a `content`. Nothing here is deleted."""
        return await self._behind.import_(lines, progress)

    async def close(self) -> None:
        await self._behind.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


def _changed(settings: Settings, path: str | None, overrides: dict[str, Any]) -> Settings:
    return msgspec.structs.replace(settings, **overrides, **({} if path is None else {"path": path}))
