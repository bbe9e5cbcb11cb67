"""A server's memory for programs with an event loop: the verbs of `Trivet`, to be awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from functools import wraps
from types import TracebackType
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

import msgspec

from trivet.errors import InvalidInput
from trivet.settings import Settings, load_settings
from trivet.settings.address import is_server
from trivet.trivet import Trivet
from trivet.types import Imported, Progress

if TYPE_CHECKING:
    from trivet.client.async_connection import AsyncConnection

P = ParamSpec("P")
R = TypeVar("R")


def awaited(
    verb: Callable[Concatenate[Trivet, P], R],
) -> Callable[Concatenate[AsyncTrivet, P], Coroutine[Any, Any, R]]:
    """The same verb with the same arguments, sent to the server without holding up the event loop."""

    @wraps(verb)
    async def done(self: AsyncTrivet, /, *args: P.args, **kwargs: P.kwargs) -> R:
        answer: R = await self._server.do(verb, args, kwargs)
        return answer

    return done


class AsyncTrivet:
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

    remember = awaited(Trivet.remember)
    remember_many = awaited(Trivet.remember_many)
    recall = awaited(Trivet.recall)
    get = awaited(Trivet.get)
    list = awaited(Trivet.list)
    edit = awaited(Trivet.edit)
    forget = awaited(Trivet.forget)
    restore = awaited(Trivet.restore)
    purge = awaited(Trivet.purge)
    link = awaited(Trivet.link)
    unlink = awaited(Trivet.unlink)
    links = awaited(Trivet.links)
    share = awaited(Trivet.share)
    unshare = awaited(Trivet.unshare)
    shares = awaited(Trivet.shares)
    reveal = awaited(Trivet.reveal)
    history = awaited(Trivet.history)
    diff = awaited(Trivet.diff)
    why_not = awaited(Trivet.why_not)
    concepts = awaited(Trivet.concepts)
    graph = awaited(Trivet.graph)
    tags = awaited(Trivet.tags)
    categories = awaited(Trivet.categories)
    inbox_list = awaited(Trivet.inbox_list)
    inbox_show = awaited(Trivet.inbox_show)
    inbox_propose = awaited(Trivet.inbox_propose)
    inbox_accept = awaited(Trivet.inbox_accept)
    inbox_edit = awaited(Trivet.inbox_edit)
    inbox_reject = awaited(Trivet.inbox_reject)
    feedback = awaited(Trivet.feedback)
    usage = awaited(Trivet.usage)
    stats = awaited(Trivet.stats)
    audit = awaited(Trivet.audit)

    # Only where the store is; they are here to say what to do instead.
    rotate_keys = awaited(Trivet.rotate_keys)
    redact = awaited(Trivet.redact)
    backup = awaited(Trivet.backup)
    doctor = awaited(Trivet.doctor)
    reindex = awaited(Trivet.reindex)
    drain = awaited(Trivet.drain)
    embed = awaited(Trivet.embed)
    tidy = awaited(Trivet.tidy)
    budgets = awaited(Trivet.budgets)

    def export(self, *, include_sensitive: bool = False) -> AsyncIterator[str]:
        """The whole store as lines of JSON: header, memories with their history, links."""
        return self._server.receive(Trivet.export, {"include_sensitive": include_sensitive})

    async def import_(self, lines: Iterable[str], *, progress: Progress | None = None) -> Imported:
        """Take in lines of an export, or plain memories with at least a `content`. Nothing here is deleted."""
        imported: Imported = await self._server.carry(Trivet.import_, lines, progress)
        return imported

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
