"""A small chat completions server whose answers the test decides."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.waiting import ended, happened

# Maps the user message to the assistant's text, an error status, or None for silence.
Answer = Callable[[Any], str | int | None]


class ChatServer(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.bodies: list[str] = []
        self.keys: list[str | None] = []
        self.asked = threading.Event()
        self.over = threading.Event()

    @property
    def spec(self) -> str:
        return f"openai:tiny@http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, ChatServer)
        raw = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.bodies.append(raw)
        self.server.keys.append(self.headers.get("Authorization"))
        self.server.asked.set()
        answer = self.server.answer(json.loads(json.loads(raw)["messages"][1]["content"]))
        if answer is None:
            happened(self.server.over)
        elif isinstance(answer, int):
            self._send(answer, {"error": "out of order"})
        else:
            self._send(200, {"choices": [{"message": {"role": "assistant", "content": answer}}]})

    def _send(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Suppress logging, so that it does not mix with the test's output."""


@contextmanager
def chat_server(answer: Answer) -> Iterator[ChatServer]:
    server = ChatServer(answer)
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
    )
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        ended(thread)
