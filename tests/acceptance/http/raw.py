"""A raw connection for requests that no well-behaved client sends."""

from __future__ import annotations

import socket
from typing import Self


class Raw:
    def __init__(self, address: str) -> None:
        host, port = address.removeprefix("http://").split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self._host = host

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def head(self, method: str, path: str, key: str, **headers: object) -> None:
        """Send the head of a request; the test sends the body, or none."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host}", f"Authorization: Bearer {key}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())

    def status(self) -> int:
        """Return the status of the answer, or 0 if the server closed the connection."""
        first = self.socket.makefile("rb").readline()
        return int(first.split()[1]) if first else 0

    def until(self, end: bytes) -> bytes:
        """Read up to and including these bytes."""
        received = b""
        while not received.endswith(end):
            received += self.socket.recv(1)
        return received

    def closed(self) -> bool:
        """Return whether the server closes the connection without sending anything."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
