"""Servers on real sockets for tests: one that many stores share, each below a path of its own."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import uvicorn
from starlette.types import ASGIApp, Receive, Scope, Send

from trivet import Trivet
from trivet.engine import Engine
from trivet.types import Finding, Progress

from .small_app import KEY, small_app


@contextmanager
def serving(app: Any, **options: Any) -> Iterator[str]:
    """Runs an app on a port of its own and gives its address."""
    listening = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, log_level="warning", lifespan="off", timeout_graceful_shutdown=5, **options)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"{'https' if options else 'http'}://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        listening.close()


class Switchboard:
    """Several apps behind one address, as a reverse proxy has them: each below a prefix that it does not see."""

    def __init__(self) -> None:
        self._apps: dict[str, ASGIApp] = {}
        self._numbers = count()

    @contextmanager
    def under(self, app: ASGIApp) -> Iterator[str]:
        prefix = f"/house/{next(self._numbers)}"
        self._apps[prefix] = app
        try:
            yield prefix
        finally:
            del self._apps[prefix]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        prefix = next(prefix for prefix in self._apps if scope["path"].startswith(f"{prefix}/"))
        stripped = {name: scope[name][len(prefix) :] for name in ("path", "raw_path")}
        await self._apps[prefix](scope | stripped, receive, send)


class Served(Trivet):
    """A client, with the hands on the server's store that whoever runs the server has."""

    behind: Trivet

    @property
    def engine(self) -> Engine:
        return self.behind.engine

    def doctor(self) -> tuple[Finding, ...]:
        return self.behind.doctor()

    def drain(self, *, progress: Progress | None = None) -> int:
        return self.behind.drain(progress=progress)

    def embed(self, *, progress: Progress | None = None) -> int:
        return self.behind.embed(progress=progress)

    def reindex(
        self, *, lexical: bool = True, vectors: bool = True, graph: bool = True, progress: Progress | None = None
    ) -> int:
        return self.behind.reindex(lexical=lexical, vectors=vectors, graph=graph, progress=progress)


class Houses:
    """Opens stores behind one server."""

    def __init__(self, address: str, switchboard: Switchboard) -> None:
        self._address = address
        self._switchboard = switchboard

    @contextmanager
    def open(self, path: Path, **settings: Any) -> Iterator[Served]:
        with (
            Trivet.open(path, **settings) as behind,
            self._switchboard.under(small_app(behind)) as prefix,
            Served.open(self._address + prefix, key=KEY) as client,
        ):
            client.behind = behind
            yield client


@contextmanager
def houses() -> Iterator[Houses]:
    switchboard = Switchboard()
    with serving(switchboard) as address:
        yield Houses(address, switchboard)
