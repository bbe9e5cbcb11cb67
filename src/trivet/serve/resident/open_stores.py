"""Stores, code indexes and page servers that the resident process keeps open."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from trivet.errors import TrivetError
from trivet.memory.engine import Shared, open_engine
from trivet.settings import Settings
from trivet.settings.locations import is_file, without_password
from trivet.trivet import Trivet

if TYPE_CHECKING:
    from trivet.code.code_index import CodeIndex
    from trivet.code.types import CodeAnswer, Question
    from trivet.serve.http.server import BackgroundServer


# Each holds its vectors in memory.
MAX_OPEN_STORES = 4


class _OpenStore(msgspec.Struct):
    memory: Trivet
    users: int = 0
    used: float = 0.0


class Stores:
    def __init__(self) -> None:
        self._open: dict[bytes, _OpenStore] = {}
        self._models: dict[tuple[str, str, int], Shared] = {}
        self._opening_locks: dict[bytes, threading.Lock] = {}
        self._lock = threading.Lock()
        self._loading = threading.Lock()

    @contextmanager
    def using(self, settings: Settings) -> Iterator[Trivet]:
        one = self._acquired(msgspec.structs.replace(settings, background=True))
        try:
            yield one.memory
        finally:
            with self._lock:
                one.users -= 1
                one.used = time.monotonic()
            self._close_excess()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(
            without_password(one.memory.settings.path) for one in list(self._open.values())
        )

    def close(self) -> None:
        for one in self._open.values():
            one.memory.close()
        for shared in self._models.values():
            shared.close()

    def _acquired(self, settings: Settings) -> _OpenStore:
        name = msgspec.json.encode(settings)
        with self._lock:
            turn = self._opening_locks.setdefault(name, threading.Lock())
        with turn:  # a slow open delays only callers of the same store
            found = self._acquired_if_open(name)
            if found is not None and not self._sync_changed(name, found):
                return found
            opened = _OpenStore(self._opened(settings), users=1)
            with self._lock:
                self._open[name] = opened
            return opened

    def _sync_changed(self, name: bytes, found: _OpenStore) -> bool:
        """Drop the store, and return True, if it started or stopped syncing."""
        if not is_file(found.memory.settings.path):
            return False
        engine = found.memory.engine
        if engine.follows == engine.store.feed.is_laptop():
            return False
        with self._lock:
            found.users -= 1
            self._open.pop(name, None)
            idle = not found.users
        if idle:  # a store in use stays open until the process ends
            found.memory.close()
        return True

    def _acquired_if_open(self, name: bytes) -> _OpenStore | None:
        """Find and mark under one lock, or another thread could close it in between."""
        with self._lock:
            found = self._open.get(name)
            if found is not None:
                found.users += 1
            return found

    def _opened(self, settings: Settings) -> Trivet:
        if not is_file(settings.path):
            return Trivet.open(settings=settings)  # it has connections of its own
        return Trivet.of(open_engine(settings, self.shared(settings)))

    def shared(self, settings: Settings) -> Shared:
        name = (settings.embedder, settings.rerank, settings.recalls_at_once)
        with self._loading:
            if name not in self._models:
                self._models[name] = Shared.of(settings)
            return self._models[name]

    def _close_excess(self) -> None:
        with self._lock:
            idle = sorted((one.used, name) for name, one in self._open.items() if not one.users)
            beyond = [name for _, name in idle[: max(0, len(self._open) - MAX_OPEN_STORES)]]
            closing = [self._open.pop(name) for name in beyond]
        for one in closing:
            one.memory.close()


logger = logging.getLogger("trivet.serve.resident")

# A large repository takes up to 400 MB.
MAX_OPEN_INDEXES = 4
INDEX_IDLE_SECONDS = 900.0
# Rescan a tree after this many seconds. This works on every disk, unlike notifications, and costs
# as much as `git status`.
FRESH_SECONDS = 1.0


class _OpenIndex(msgspec.Struct):
    index: CodeIndex
    looked: float
    used: float
    users: int = 0


class CodeIndexes:
    def __init__(self) -> None:
        self._open: dict[str, _OpenIndex] = {}
        self._opening: set[str] = set()
        self._lock = threading.Lock()

    @property
    def folders(self) -> tuple[str, ...]:
        return tuple(self._open)

    def answer(self, folder: str, question: Question) -> CodeAnswer | None:
        """Return the answer, or None if the index is not open."""
        from trivet.code.types import answer

        with self._lock:
            one = self._open.get(folder)
            if one is None:
                return None
            one.users += 1
        try:
            if time.monotonic() - one.looked > FRESH_SECONDS:
                one.index.refresh()
                one.looked = time.monotonic()
            return answer(one.index, question)
        finally:
            with self._lock:
                one.users -= 1
                one.used = time.monotonic()

    def offer(self, folder: str, question: Question) -> CodeAnswer | None:
        """Return the answer, or open the index for the next call and return None."""
        found = self.answer(folder, question)
        if found is None:
            self.open_soon(folder)
        return found

    def open_soon(self, folder: str) -> None:
        with self._lock:
            if folder in self._open or folder in self._opening:
                return
            self._opening.add(folder)
        threading.Thread(
            target=self.open_now, args=(folder,), name="trivet-code", daemon=True
        ).start()

    def close_idle(self, seconds: float = INDEX_IDLE_SECONDS) -> None:
        with self._lock:
            idle = sorted((one.used, folder) for folder, one in self._open.items() if not one.users)
            beyond = len(self._open) - MAX_OPEN_INDEXES
            limit = time.monotonic() - seconds
            gone = [
                folder
                for place, (used, folder) in enumerate(idle)
                if place < beyond or used < limit
            ]
            closing = [self._open.pop(folder) for folder in gone]
        for one in closing:
            one.index.close()

    def close(self) -> None:
        with self._lock:
            closing = list(self._open.values())
            self._open.clear()
        for one in closing:
            one.index.close()

    def open_now(self, folder: str) -> None:
        from trivet.code.code_index import CodeIndex

        try:
            index = CodeIndex.open(folder)
            index.refresh()
            moment = time.monotonic()
            with self._lock:
                self._open[folder] = _OpenIndex(index, moment, moment)
        except TrivetError as error:  # callers search themselves and get the same error
            logger.warning("Cannot keep the code index of %s open: %s", folder, error)
        finally:
            with self._lock:
                self._opening.discard(folder)
        self.close_idle()


# After this time an open tab must be reopened with `trivet open`.
PAGE_IDLE_SECONDS = 3600.0
# Each has a store open, with its vectors.
MAX_OPEN_PAGES = 4


class Pages:
    """Page servers by settings; `shared` returns the models already loaded for them."""

    def __init__(self, shared: Callable[[Settings], Shared]) -> None:
        self._shared = shared
        self._open: dict[bytes, BackgroundServer] = {}
        self._lock = threading.Lock()

    def link(self, settings: Settings) -> str:
        name = msgspec.json.encode(settings)
        with self._lock:
            page = self._open.get(name)
            if page is None or not page.alive:
                page = self._open[name] = self._start(settings)
            link = page.link()
            beyond = self._unused()[: max(0, len(self._open) - MAX_OPEN_PAGES)]
            self._end(beyond)
        return link

    @property
    def used(self) -> float:
        return max((page.used for page in list(self._open.values())), default=0.0)

    def close_idle(self) -> None:
        if not self._open:
            return
        with self._lock:
            limit = time.monotonic() - PAGE_IDLE_SECONDS
            self._end([name for name in self._unused() if self._open[name].used < limit])

    def close(self) -> None:
        with self._lock:
            self._end(list(self._open))

    def _start(self, settings: Settings) -> BackgroundServer:
        from trivet.serve.http.server import BackgroundServer

        settings = msgspec.structs.replace(settings, background=True)
        return BackgroundServer(
            settings, self._shared(settings) if is_file(settings.path) else None
        )

    def _unused(self) -> list[bytes]:
        return sorted(self._open, key=lambda name: self._open[name].used)

    def _end(self, names: list[bytes]) -> None:
        for name in names:
            self._open.pop(name).close()
