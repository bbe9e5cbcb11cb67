"""An embedder that can hang, lie or answer garbage on demand."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from support.word_embedder import WordEmbedder

MANNERS = (
    "hangs",
    "another width",
    "not a number",
    "infinite",
    "web page",
    "half a body",
    "too few",
    "error",
    "no list",
)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Stay silent: clients are killed on purpose."""


class LyingEmbedder(WordEmbedder):
    """`manner` is "honest" or one of MANNERS."""

    def __init__(self) -> None:
        self.manner = "honest"
        self.patience = threading.Event()  # Set it to release requests that hang.
        super().__init__()

    def start(self) -> None:
        self._server = _Server(("127.0.0.1", self.port), _handler(self))
        self.port = self._server.server_port
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}
        )
        self._thread.start()

    def be(self, manner: str) -> None:
        self.patience.set()
        self.patience = threading.Event()
        self.manner = manner

    def stop(self) -> None:
        self.be("honest")
        super().stop()

    def body(self, texts: list[str]) -> bytes:
        vectors: list[list[float]] = [self.vector(text) for text in texts]
        match self.manner:
            case "another width":
                vectors = [vector[:-3] for vector in vectors]
            case "not a number":
                vectors = [[float("nan"), *vector[1:]] for vector in vectors]
            case "infinite":
                vectors = [[1e39, *vector[1:]] for vector in vectors]
            case "web page":
                return b"<html><body>Sign in to this network</body></html>"
            case "too few":
                vectors = vectors[1:]
            case "no list":
                return json.dumps({"data": "vectors"}).encode()
        data: list[Any] = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
        return json.dumps({"data": data}).encode()


def _handler(embedder: LyingEmbedder) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            if embedder.manner == "hangs":
                embedder.patience.wait()
            body = embedder.body(texts)
            try:
                self.send_response(500 if embedder.manner == "error" else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                half = embedder.manner == "half a body"
                self.wfile.write(body[: len(body) // 2] if half else body)
                self.close_connection = half
            except ConnectionError:
                self.close_connection = True

        def log_message(self, *_: object) -> None:
            pass

    return Handler
