"""Real servers for the client's tests: many stores behind one socket, each under its own path."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Scope, Send

from support.waiting import ended, happened, result_of
from trivet import Settings, Trivet
from trivet.memory.engine import Engine
from trivet.serve.http.server import build_app
from trivet.serve.http.tenants import Tenants
from trivet.types import Finding, Progress, Right

ALL_RIGHTS: tuple[Right, ...] = ("read", "write", "share", "reveal", "admin")
# These settings read no environment, so they repeat those of `conftest.py`.
USUAL: dict[str, Any] = {"changes": "off", "secrets_keyring": False}
UNLIMITED = {"server_requests_a_minute": 10**6, "server_burst": 10**6}


@contextmanager
def serving(app: ASGIApp, **options: Any) -> Iterator[str]:
    """Run an app on its own port and return its address."""
    listening = socket.socket(proto=socket.IPPROTO_TCP)
    listening.bind(("127.0.0.1", 0))
    listening.listen()
    server = uvicorn.Server(
        uvicorn.Config(app, log_level="warning", timeout_graceful_shutdown=5, **options)
    )
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        yield f"{'https' if 'ssl_keyfile' in options else 'http'}://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        server.should_exit = True
        ended(thread)
        listening.close()


class Switchboard:
    """Several apps behind one address, each unaware of its path prefix."""

    def __init__(self) -> None:
        self._apps: dict[str, ASGIApp] = {}
        self._numbers = count()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._started = threading.Event()

    @contextmanager
    def under(self, app: Starlette) -> Iterator[str]:
        """Yield the path of the app, which runs until the context ends."""
        happened(self._started)
        assert self._loop is not None
        begun, ended = threading.Event(), asyncio.Event()
        life = asyncio.run_coroutine_threadsafe(_live(app, begun, ended), self._loop)
        happened(begun)
        prefix = f"/tenants/{next(self._numbers)}"
        self._apps[prefix] = app
        try:
            yield prefix
        finally:
            del self._apps[prefix]
            self._loop.call_soon_threadsafe(ended.set)
            result_of(life)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._own_life(receive, send)
            return
        prefix = next(prefix for prefix in self._apps if scope["path"].startswith(f"{prefix}/"))
        stripped = {name: scope[name][len(prefix) :] for name in ("path", "raw_path")}
        await self._apps[prefix]({**scope, **stripped}, receive, send)

    async def _own_life(self, receive: Receive, send: Send) -> None:
        self._loop = asyncio.get_running_loop()
        for step in ("startup", "shutdown"):
            await receive()
            self._started.set()
            await send({"type": f"lifespan.{step}.complete"})


async def _live(app: Starlette, begun: threading.Event, ended: asyncio.Event) -> None:
    async with app.router.lifespan_context(app):
        begun.set()
        await ended.wait()


class Served(Trivet):
    """A client that can also access the server's store directly, as its operator can."""

    behind: Trivet

    @property
    def engine(self) -> Engine:
        return self.behind.engine

    def doctor(self, *, quick: bool | None = None) -> tuple[Finding, ...]:
        return self.behind.doctor(quick=quick)

    def drain(self, *, progress: Progress | None = None) -> int:
        return self.behind.drain(progress=progress)

    def embed(self, *, progress: Progress | None = None) -> int:
        return self.behind.embed(progress=progress)

    def reindex(
        self,
        *,
        lexical: bool = True,
        vectors: bool = True,
        graph: bool = True,
        progress: Progress | None = None,
    ) -> int:
        return self.behind.reindex(lexical=lexical, vectors=vectors, graph=graph, progress=progress)


class ServedStores:
    """Opener of stores behind one server."""

    def __init__(self, address: str, switchboard: Switchboard) -> None:
        self._address = address
        self._switchboard = switchboard

    @contextmanager
    def at(self, path: Path | str, **settings: Any) -> Iterator[tuple[str, Tenants]]:
        """Yield the address of a server over the store at `path`, which belongs to user ana."""
        chosen = Settings(**{"path": str(path), **USUAL, **UNLIMITED, **settings})
        tenants = Tenants(chosen)
        with self._switchboard.under(build_app(tenants, chosen)) as prefix:
            yield self._address + prefix, tenants

    @contextmanager
    def open(self, path: Path, **settings: Any) -> Iterator[Served]:
        """Yield a client of such a server."""
        with (
            self.at(path, **settings) as (address, tenants),
            Served.open(address, key=key_of(tenants)) as client,
            Trivet.open(path, **settings) as behind,
        ):
            client.behind = behind
            yield client


def key_of(tenants: Tenants, user: str = "ana") -> str:
    return tenants.make_key(user, "admin", ALL_RIGHTS)


@contextmanager
def serve_stores() -> Iterator[ServedStores]:
    switchboard = Switchboard()
    with serving(switchboard) as address:
        yield ServedStores(address, switchboard)
