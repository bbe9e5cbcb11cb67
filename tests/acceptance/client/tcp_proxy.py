"""A connection that tests can watch and cut."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

from support.waiting import ended

READ_BYTES = 64 * 1024


class TcpProxy:
    """A TCP proxy between client and server.

    `requests` holds the first bytes of each request. `lose_answers` and `lose_requests` say how
    many to drop.
    """

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or "", parts.port or 0)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listening.getsockname()[1]}{parts.path}"
        self.connections = 0
        self.requests: list[str] = []
        self.lose_answers = 0
        self.lose_requests = 0
        self.asked = threading.Event()
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def headers(self, name: str) -> list[str]:
        """Return the value of a header for each request, or an empty string."""
        found = [
            [line for line in text.split("\r\n") if line.lower().startswith(f"{name}:")]
            for text in self.requests
        ]
        return [lines[0].partition(": ")[2] if lines else "" for lines in found]

    def close(self) -> None:
        # Closing the socket from another thread does not wake a blocked accept.
        with contextlib.suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            ended(thread)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            self.connections += 1
            server = socket.create_connection(self._target)
            for source, sink, answers in ((client, server, False), (server, client, True)):
                self._threads.append(
                    threading.Thread(target=self._pass, args=(source, sink, answers))
                )
                self._threads[-1].start()

    def _pass(self, source: socket.socket, sink: socket.socket, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while piece := source.recv(READ_BYTES):
                if self._is_lost(piece, answers):
                    break
                sink.sendall(piece)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        if not answers:
            return
        source.close()
        sink.close()

    def _is_lost(self, piece: bytes, answers: bool) -> bool:
        if answers:
            if self.lose_answers and piece.startswith(b"HTTP/"):
                self.lose_answers -= 1
                return True
            return False
        if b" HTTP/1.1\r\n" not in piece:
            return False
        self.requests.append(piece.decode("latin-1"))
        self.asked.set()
        if self.lose_requests:
            self.lose_requests -= 1
            return True
        return False


@contextmanager
def proxied(target: str) -> Iterator[TcpProxy]:
    proxy = TcpProxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
