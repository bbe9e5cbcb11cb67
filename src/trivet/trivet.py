"""`Trivet`: one object for a memory, with a method for each verb of the contract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from os import PathLike
from types import TracebackType
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import msgspec

from trivet.contract import Remember, Request, check
from trivet.methods import Methods
from trivet.settings import Settings, load_settings
from trivet.settings.locations import is_server
from trivet.types import Caller, Imported, Progress, Remembered

if TYPE_CHECKING:
    from trivet.memory.engine import Engine

T = TypeVar("T")


class Remote(Protocol):
    """Performs the verbs in another process: a server or the user's resident process."""

    @property
    def address(self) -> str | None:
        """The server's address; None for the resident process."""

    @property
    def settings(self) -> Settings: ...

    def perform(self, request: Request[T]) -> T: ...
    def remember_many(
        self, memories: Iterable[Mapping[str, Any] | Remember]
    ) -> list[Remembered]: ...
    def diff(self, id: str, older: int, newer: int, reveal: bool) -> str: ...
    def export(self, include_sensitive: bool) -> Iterator[str]: ...
    def import_(self, lines: Iterable[str], progress: Progress | None) -> Imported: ...

    def engine(self) -> Engine:
        """Return the local engine, if this process can open the store."""

    def close(self) -> None: ...


class Trivet(Methods):
    """A memory. Create it with `Trivet.open()`; use it as a context manager or call `close()`."""

    _remote: Remote | None = None

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    @classmethod
    def open(
        cls,
        path: str | PathLike[str] | None = None,
        *,
        settings: Settings | None = None,
        create: bool = True,
        **overrides: Any,
    ) -> Self:
        """Open the store at `path`.

        Args:
            path: A file, a PostgreSQL address, or a server such as https://memory.example.org.
                The configured store if omitted.
            settings: Settings to use instead of those of the environment and trivet.toml.
            create: Create a missing file. If False, raise an error that names the nearest store.
            **overrides: Settings by name, such as key="..." or embedder="none"; they win.

        Raises:
            StoreError: The store cannot be opened, or does not exist and `create` is False.
        """
        named = None if path is None else str(path)
        if settings is None:
            settings = load_settings(path=named, **overrides)
        else:
            given = {**overrides, "path": named} if named is not None else overrides
            settings = msgspec.structs.replace(settings, **given)
        if is_server(settings.path):
            from trivet.client.connection import Connection

            return cls.through(Connection(settings))
        from trivet.memory.engine import open_engine

        if not create:
            from trivet.settings.locations import check_exists

            check_exists(settings)

        return cls.of(open_engine(settings))

    @classmethod
    def of(cls, engine: Engine) -> Self:
        """Return a memory over an engine and resume its background work."""
        from trivet.memory.admin.maintenance import refresh

        refresh(engine)
        if engine.settings.background:
            engine.worker.start()
        return cls(engine)

    @classmethod
    def through(cls, remote: Remote) -> Self:
        """Return a memory whose verbs run in another process."""
        trivet = cls.__new__(cls)
        trivet._remote = remote
        return trivet

    @property
    def settings(self) -> Settings:
        return self._engine.settings if self._remote is None else self._remote.settings

    @property
    def server(self) -> str | None:
        """The server's address; None for a local store."""
        return None if self._remote is None else self._remote.address

    @property
    def remote(self) -> Remote | None:
        """The connection to another process, if that performs the verbs."""
        return self._remote

    @property
    def engine(self) -> Engine:
        """The parts behind the verbs, for tools such as the lab."""
        return self._engine if self._remote is None else self._remote.engine()

    def acting_as(self, caller: Caller) -> Trivet:
        """Return the same store limited to what a server's user may see and do.

        The result needs no `close()`.
        """
        if self._remote is not None and self._remote.address is not None:
            from trivet.client.call import unsupported_over_http

            raise unsupported_over_http("acting_as")
        return Trivet(self.engine.acting_as(caller))

    def perform(self, request: Request[T]) -> T:
        """Perform a checked request of the contract."""
        if self._remote is not None:
            return self._remote.perform(request)
        from trivet.memory.perform import perform

        return perform(self._engine, request)

    def remember_many(self, memories: Iterable[Mapping[str, Any] | Remember]) -> list[Remembered]:
        """Store several memories, each a mapping of `remember`'s arguments, in one transaction."""
        if self._remote is not None:
            return self._remote.remember_many(memories)
        from trivet.memory.perform import complete_ids
        from trivet.memory.remember import remember_many

        self._engine.demand("write")
        requests = [one if isinstance(one, Remember) else check(Remember, one) for one in memories]
        return remember_many(self._engine, [complete_ids(self._engine, one) for one in requests])

    def diff(self, id: str, older: int, newer: int, *, reveal: bool = False) -> str:
        """Return the changes between two revisions as a unified diff."""
        if self._remote is not None:
            return self._remote.diff(id, older, newer, reveal)
        from trivet.memory.lifecycle import diff

        return diff(self._engine, id, older, newer, reveal)

    def export(self, *, include_sensitive: bool = False) -> Iterator[str]:
        """Yield the whole store as lines of JSON: header, memories with history, links.

        Args:
            include_sensitive: Export sensitive memories too; the audit record notes it.
        """
        if self._remote is not None:
            return self._remote.export(include_sensitive)
        from trivet.memory.admin.export import export_lines
        from trivet.memory.perform import note_reveal

        self._engine.demand("read")
        if include_sensitive:
            note_reveal(self._engine, "export", None)
        return export_lines(self._engine, include_sensitive)

    def import_(self, lines: Iterable[str], *, progress: Progress | None = None) -> Imported:
        """Import lines of an export, or plain memories with at least `content`; never deletes.

        Args:
            lines: One JSON object each.
            progress: Called with the number of memories done since its last call.
        """
        if self._remote is not None:
            return self._remote.import_(lines, progress)
        from trivet.memory.admin.importer import import_lines

        self._engine.demand("write")
        return import_lines(self._engine, lines, progress)

    def close(self) -> None:
        (self._remote or self._engine).close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
