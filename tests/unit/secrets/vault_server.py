"""HTTP server that keeps one document like HashiCorp Vault's key-value store, version 2."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.waiting import ended

TOKEN = "a-token-of-the-test"


class Vault(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.versions: dict[str, list[Any]] = {}
        self.sealed = False
        self.faster: Any = None  # a competing document, written just before the next write

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/secret/team/trivet"


class _Handler(BaseHTTPRequestHandler):
    server: Vault

    def do_GET(self) -> None:
        if not self._allowed():
            return
        versions = self.server.versions.get(self.path, [])
        if not versions:
            self._send(404, {"errors": []})
        else:
            self._send(
                200, {"data": {"data": versions[-1], "metadata": {"version": len(versions)}}}
            )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self._allowed():
            return
        versions = self.server.versions.setdefault(self.path, [])
        if self.server.faster is not None:
            versions.append(self.server.faster)
            self.server.faster = None
        if body["options"]["cas"] != len(versions):
            self._send(
                400, {"errors": ["check-and-set parameter did not match the current version"]}
            )
            return
        versions.append(body["data"])
        self._send(200, {"data": {"version": len(versions)}})

    def _allowed(self) -> bool:
        if self.server.sealed:
            self._send(503, {"errors": ["Vault is sealed"]})
        elif self.headers["X-Vault-Token"] != TOKEN:
            self._send(403, {"errors": ["permission denied"]})
        else:
            return True
        return False

    def _send(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Suppress request logging."""


@contextmanager
def vault() -> Iterator[Vault]:
    server = Vault()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        ended(thread)
