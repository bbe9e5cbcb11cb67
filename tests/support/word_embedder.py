"""A real OpenAI embeddings API server with vectors made of words that can stop or hang."""

from __future__ import annotations

import json
import re
import threading
import zlib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from support.store_fixtures import Opened
from support.waiting import ended, happened
from trivet import Trivet


class WordEmbedder:
    """Embedder that gives texts with equal words equal vectors.

    `meaning` replaces words before that.
    """

    def __init__(self, dimension: int = 32) -> None:
        self.dimension = dimension
        self.meaning: dict[str, str] = {}
        self.refused: str | None = None
        self.texts: list[str] = []
        self.asked = threading.Event()
        self.answering = threading.Event()
        self.answering.set()
        self.port = 0
        self._server: ThreadingHTTPServer | None = None
        self._thread: threading.Thread | None = None
        self.start()

    def spec(self, model: str = "words") -> str:
        return f"openai:{model}@http://127.0.0.1:{self.port}/v1"

    def start(self) -> None:
        self._server = ThreadingHTTPServer(("127.0.0.1", self.port), _handler(self))
        self.port = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.01}
        )
        self._thread.start()

    def stop(self) -> None:
        self.answering.set()
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            ended(self._thread)
            self._server.server_close()
            self._server = None

    def vector(self, text: str) -> list[float]:
        words = [self.meaning.get(word, word) for word in re.findall(r"\w+", text.lower())]
        total = np.full(self.dimension, 1e-3)
        for word in words:
            total += np.random.default_rng(zlib.crc32(word.encode())).normal(size=self.dimension)
        return [float(number) for number in total]


def _handler(embedder: WordEmbedder) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            embedder.texts.extend(texts)
            embedder.asked.set()
            happened(embedder.answering)
            if embedder.refused is not None and any(embedder.refused in text for text in texts):
                self._send(
                    400, {"error": f"cannot embed {texts}"}
                )  # like providers, which quote what they reject
            else:
                data = [
                    {"index": at, "embedding": embedder.vector(text)}
                    for at, text in enumerate(texts)
                ]
                self._send(200, {"data": data})

        def _send(self, status: int, body: object) -> None:
            raw = json.dumps(body).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)
            except ConnectionError:
                self.close_connection = True  # the client gave up, as some tests want

        def log_message(self, *_: object) -> None:
            pass

    return Handler


@pytest.fixture
def embedder() -> Iterator[WordEmbedder]:
    server = WordEmbedder()
    yield server
    server.stop()


@pytest.fixture
def hybrid(open_trivet: Opened, embedder: WordEmbedder) -> Trivet:
    """A store with both legs, whose vectors come from `embedder`."""
    return open_trivet(embedder=embedder.spec())
