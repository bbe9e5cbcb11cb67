"""What the processes of one server tell each other: which tenant was written to, for those who wait for its news."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection

# Told instead of a name where names were lost: any tenant may have been written to.
ANY = "*"
# A pipe takes so much in one piece or not at all; a tenant's name is far shorter.
PIECE = 4096
# So long after a neighbour's pipe was full it is tried again.
AGAIN_SECONDS = 0.1


class Neighbours:
    """The ends of pipes: the own one to read, those of the others to write. All of it on the event loop's thread."""

    def __init__(self, own: Connection | None = None, others: Sequence[Connection] = ()) -> None:
        self._own = own
        self._others = tuple(others)
        self._behind: set[Connection] = set()  # those whose pipe was full
        self._rest = b""
        for one in (*([own] if own else ()), *others):
            os.set_blocking(one.fileno(), False)

    @contextmanager
    def listening(self, heard: Callable[[str], None]) -> Iterator[None]:
        """Calls `heard` with the name of every tenant that another process has written to."""
        if self._own is None:
            yield
            return
        loop, own = asyncio.get_running_loop(), self._own.fileno()
        loop.add_reader(own, lambda: self._read(own, heard))
        try:
            yield
        finally:
            loop.remove_reader(own)

    def tell(self, tenant: str) -> None:
        for one in self._others:
            if one not in self._behind:
                self._send(one, tenant)

    def _send(self, one: Connection, tenant: str) -> None:
        """A neighbour that does not read is no reason to wait: it hears once there is room that it has missed some."""
        try:
            os.write(one.fileno(), f"{tenant}\n".encode())
            self._behind.discard(one)
        except BlockingIOError:
            self._behind.add(one)
            asyncio.get_running_loop().call_later(AGAIN_SECONDS, self._send, one, ANY)

    def _read(self, own: int, heard: Callable[[str], None]) -> None:
        try:
            *names, self._rest = (self._rest + os.read(own, PIECE)).split(b"\n")
        except BlockingIOError:  # another look came first
            return
        for name in dict.fromkeys(names):
            heard(name.decode())
