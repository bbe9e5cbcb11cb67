"""How much memory vectors may take in one process, whoever's they are: those not asked for longest make room."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable

Forget = Callable[[], None]


class Room:
    def __init__(self, bytes: int) -> None:
        self.bytes = bytes
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, tuple[int, Forget]] = OrderedDict()

    def take(self, name: Hashable, bytes: int, forget: Forget) -> None:
        """Says that `name` now takes so many bytes. Others are told to forget theirs until all fits."""
        with self._lock:
            self._held[name] = (bytes, forget)
            self._held.move_to_end(name)
            going = []
            while sum(held for held, _ in self._held.values()) > self.bytes and len(self._held) > 1:
                going.append(self._held.popitem(last=False)[1][1])
        for make_room in going:
            make_room()

    def give_back(self, name: Hashable) -> None:
        with self._lock:
            self._held.pop(name, None)
