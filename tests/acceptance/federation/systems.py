"""Other systems for tests: real programs, and an HTTP server in a thread."""

from __future__ import annotations

import base64
import json
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from support.waiting import ended
from trivet.types import Answer, LegHealth

# Long enough for a process to start on a busy machine; only a silent system uses all of it.
PATIENT_MS = 60_000
# For systems that never answer.
SHORT_MS = 300


def program(code: str) -> list[str]:
    """Return a command for a Python program that starts fast, without site packages."""
    return [sys.executable, "-S", "-E", "-c", code]


def printing(value: Any, **more: Any) -> dict[str, Any]:
    """Return a system that prints these hits for any query."""
    return saying(json.dumps(value), **more)


def saying(text: str, **more: Any) -> dict[str, Any]:
    """Return a system's settings; its program prints the text."""
    # Compressed, since a program argument must not be long.
    packed = base64.b64encode(zlib.compress(text.encode()))
    code = f"import base64, sys, zlib; sys.stdout.buffer.write(zlib.decompress(base64.b64decode({packed!r})))"
    return {"command": program(code), "time_limit_ms": PATIENT_MS, **more}


def health_of(answer: Answer, name: str) -> LegHealth:
    return next(leg for leg in answer.health.legs if leg.leg == name)


@contextmanager
def http_server(
    answer: Callable[[BaseHTTPRequestHandler, bytes], tuple[int, bytes]],
) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])))

        def _answer(self, body: bytes) -> None:
            status, content = answer(self, body)
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("Location", "/elsewhere")  # ignored unless the status is a redirect
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, format: str, *args: Any) -> None:
            """Keep the server silent."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        ended(thread)
        server.server_close()


def write(folder: Path, **files: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.md").write_text(text, encoding="utf-8")
    return folder
