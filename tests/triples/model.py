"""A real server that speaks chat completions, with a model that reads as well or as badly as a test wants."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Statement = Mapping[str, Any]
# What the user message holds -> the assistant's text, a status to fail with, or None for silence.
Answer = Callable[[Any], str | int | None]


class Model(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def __init__(self, answer: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.bodies: list[str] = []
        self.asked = threading.Event()
        self.over = threading.Event()

    @property
    def spec(self) -> str:
        return f"openai:tiny@http://127.0.0.1:{self.server_address[1]}/v1"

    @property
    def texts(self) -> list[str]:
        """Every memory's text that arrived, in order."""
        questions = [json.loads(json.loads(body)["messages"][1]["content"]) for body in self.bodies]
        return [memory["text"] for question in questions for memory in question.get("memories", [])]


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, Model)
        raw = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.bodies.append(raw)
        self.server.asked.set()
        answer = self.server.answer(json.loads(json.loads(raw)["messages"][1]["content"]))
        if answer is None:
            self.server.over.wait()
        elif isinstance(answer, int):
            self._send(answer, {"error": "out of order"})
        else:
            self._send(200, {"choices": [{"message": {"role": "assistant", "content": answer}}]})

    def _send(self, status: int, body: Any) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Silent: a test's output is its own."""


@contextmanager
def serving(answer: Answer) -> Iterator[Model]:
    server = Model(answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def knows(statements: Mapping[str, Sequence[Statement]], same: bool = False) -> Answer:
    """A model that finds these statements in texts that hold the key; `same`: what it says of all pairs of names."""

    def answer(question: Any) -> str:
        if "pairs" in question:
            return json.dumps({"same": [pair["number"] for pair in question["pairs"]] if same else []})
        entries = [
            {
                "number": memory["number"],
                "triples": [one for key in statements if key in memory["text"] for one in statements[key]],
            }
            for memory in question.get("memories", [])
        ]
        return json.dumps({"memories": entries})

    return answer


def states(subject: str, relation: str, object: str, **more: Any) -> Statement:
    return {"subject": subject, "relation": relation, "object": object, **more}
