"""A bare connection, for what no decent client would send."""

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
        """The head of a request. Its body is for the test to send, or not."""
        lines = [f"{method} {path} HTTP/1.1", f"Host: {self._host}", f"Authorization: Bearer {key}"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())

    def status(self) -> int:
        """Of the answer; 0 where the server hung up."""
        first = self.socket.makefile("rb").readline()
        return int(first.split()[1]) if first else 0

    def until(self, end: bytes) -> bytes:
        """What comes, up to and with these bytes."""
        received = b""
        while not received.endswith(end):
            received += self.socket.recv(1)
        return received

    def closed(self) -> bool:
        """Whether the server ends the connection, having sent nothing."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True
