"""The pages that the resident process serves: one for each store that was opened, while somebody looks at it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from trivet.memory.engine import Shared
from trivet.settings import Settings
from trivet.settings.address import is_file

if TYPE_CHECKING:
    from trivet.serve.http.background import BackgroundServer

# A tab that is open and not touched for so long can be opened again by `trivet open`.
IDLE_SECONDS = 3600.0
# Each has a store open, with its vectors. Beyond, the one unused for longest ends.
MOST_PAGES = 4


class Pages:
    """`shared` gives the models that the process has in memory for these settings."""

    def __init__(self, shared: Callable[[Settings], Shared]) -> None:
        self._shared = shared
        self._open: dict[bytes, BackgroundServer] = {}
        self._lock = threading.Lock()

    def link(self, settings: Settings) -> str:
        """An address that opens the page signed in, once."""
        name = msgspec.json.encode(settings)
        with self._lock:
            page = self._open.get(name)
            if page is None or not page.alive:
                page = self._open[name] = self._started(settings)
            link = page.link()
            beyond = self._unused()[: max(0, len(self._open) - MOST_PAGES)]
            self._end(beyond)
        return link

    @property
    def used(self) -> float:
        """When somebody last asked one of them for anything."""
        return max((page.used for page in list(self._open.values())), default=0.0)

    def close_idle(self) -> None:
        if not self._open:
            return
        with self._lock:
            limit = time.monotonic() - IDLE_SECONDS
            self._end([name for name in self._unused() if self._open[name].used < limit])

    def close(self) -> None:
        with self._lock:
            self._end(list(self._open))

    def _started(self, settings: Settings) -> BackgroundServer:
        from trivet.serve.http.background import BackgroundServer

        settings = msgspec.structs.replace(settings, background=True)
        return BackgroundServer(settings, self._shared(settings) if is_file(settings.path) else None)

    def _unused(self) -> list[bytes]:
        """Those unused for longest first."""
        return sorted(self._open, key=lambda name: self._open[name].used)

    def _end(self, names: list[bytes]) -> None:
        for name in names:
            self._open.pop(name).close()
