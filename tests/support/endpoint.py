"""A model endpoint whose answers the test decides."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from support.waiting import ended, happened


@dataclass
class Reply:
    """The server's answer: a status, a body (JSON unless bytes) and headers."""

    body: Any
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Received:
    path: str
    body: dict[str, Any]
    authorization: str | None


@dataclass
class Endpoint:
    """A real local HTTP server whose answers the test decides."""

    url: str
    received: list[Received] = field(default_factory=list)
    answer: Callable[[dict[str, Any]], Reply] = lambda body: Reply({})
    # Replies wait for this, so a test can keep a client waiting without a clock.
    open: threading.Event = field(default_factory=threading.Event)


def _handler(endpoint: Endpoint) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            endpoint.received.append(Received(self.path, body, self.headers["Authorization"]))
            reply = endpoint.answer(body)
            happened(endpoint.open)
            self._send(reply)

        def _send(self, reply: Reply) -> None:
            raw = reply.body if isinstance(reply.body, bytes) else json.dumps(reply.body).encode()
            try:
                self.send_response(reply.status)
                for name, value in {"Content-Length": str(len(raw)), **reply.headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(raw)
            except ConnectionError:
                self.close_connection = True  # the client gave up, as some tests want

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    state = Endpoint("")
    state.open.set()
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(state))
    state.url = f"http://127.0.0.1:{server.server_port}/v1"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield state
    state.open.set()
    server.shutdown()
    ended(thread)
    server.server_close()
