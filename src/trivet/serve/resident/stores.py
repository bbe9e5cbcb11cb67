"""The stores that the resident process has open: one for each set of settings that came, and few at a time."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import msgspec

from trivet.memory.engine import Shared, open_engine
from trivet.settings import Settings
from trivet.settings.address import is_file, without_password
from trivet.trivet import Trivet

# Each has its vectors in memory. Beyond, the one unused for longest is closed.
MOST_OPEN = 4


class _Open(msgspec.Struct):
    memory: Trivet
    users: int = 0
    used: float = 0.0


class Stores:
    def __init__(self) -> None:
        self._open: dict[bytes, _Open] = {}
        self._models: dict[tuple[str, str, int], Shared] = {}
        self._turns: dict[bytes, threading.Lock] = {}
        self._lock = threading.Lock()
        self._loading = threading.Lock()

    @contextmanager
    def using(self, settings: Settings) -> Iterator[Trivet]:
        """The memory behind these settings, which stays open at least as long as a caller uses it."""
        one = self._taken(msgspec.structs.replace(settings, background=True))
        try:
            yield one.memory
        finally:
            with self._lock:
                one.users -= 1
                one.used = time.monotonic()
            self._close_beyond()

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(without_password(one.memory.settings.path) for one in list(self._open.values()))

    def close(self) -> None:
        for one in self._open.values():
            one.memory.close()
        for shared in self._models.values():
            shared.close()

    def _taken(self, settings: Settings) -> _Open:
        name = msgspec.json.encode(settings)
        with self._lock:
            turn = self._turns.setdefault(name, threading.Lock())
        with turn:  # one that opens slowly holds up only callers of the same store
            found = self._known(name)
            if found is not None and not self._has_joined(name, found):
                return found
            opened = _Open(self._opened(settings), users=1)
            with self._lock:
                self._open[name] = opened
            return opened

    def _has_joined(self, name: bytes, found: _Open) -> bool:
        """Whether the store began to follow a server since, or stopped: then it is opened anew."""
        if not is_file(found.memory.settings.path):
            return False
        engine = found.memory.engine
        if engine.follows == engine.store.feed.is_laptop():
            return False
        with self._lock:
            found.users -= 1
            self._open.pop(name, None)
            idle = not found.users
        if idle:  # else its last user leaves it to the end of the process
            found.memory.close()
        return True

    def _known(self, name: bytes) -> _Open | None:
        """Found and marked in one go, so that no other thread closes it in between."""
        with self._lock:
            found = self._open.get(name)
            if found is not None:
                found.users += 1
            return found

    def _opened(self, settings: Settings) -> Trivet:
        if not is_file(settings.path):
            return Trivet.open(settings=settings)  # its connections are its own
        return Trivet.of(open_engine(settings, self.shared(settings)))

    def shared(self, settings: Settings) -> Shared:
        """One of each model in memory, whatever the number of stores."""
        name = (settings.embedder, settings.rerank, settings.recalls_at_once)
        with self._loading:
            if name not in self._models:
                self._models[name] = Shared.of(settings)
            return self._models[name]

    def _close_beyond(self) -> None:
        with self._lock:
            idle = sorted((one.used, name) for name, one in self._open.items() if not one.users)
            beyond = [name for _, name in idle[: max(0, len(self._open) - MOST_OPEN)]]
            closing = [self._open.pop(name) for name in beyond]
        for one in closing:
            one.memory.close()
