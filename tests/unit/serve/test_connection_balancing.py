"""The process with fewer connections accepts new ones, shown by two servers in one event loop."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from support.waiting import LIMIT_SECONDS
from trivet.serve.http import workers as shared_door
from trivet.serve.http.server import build_app, listen, make_server
from trivet.serve.http.tenants import Tenants
from trivet.serve.http.workers import SharedSocketServer
from trivet.settings import Settings

# Long enough that the delay difference between many and few connections exceeds any scheduling
# delay of a busy machine.
MAX_ACCEPT_DELAY = 4.0


@pytest.mark.parametrize("busy", [0, 1])
def test_server_with_fewer_connections_accepts(
    busy: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_door, "MAX_ACCEPT_DELAY", MAX_ACCEPT_DELAY)

    async def connect_clients() -> list[int]:
        async with AsyncExitStack() as running:
            listener = running.enter_context(listen("127.0.0.1", 0))
            servers = [
                await running.enter_async_context(_serving(path, listener)) for _ in range(2)
            ]
            for _ in range(20):
                await running.enter_async_context(_connected_to(servers[busy]))
            for number in range(3):
                await running.enter_async_context(_connected(listener))
                await _until(lambda number=number: sum(map(_connections, servers)) > 20 + number)  # type: ignore[misc]
            return [_connections(server) for server in servers]

    assert asyncio.run(connect_clients()) == ([20, 3] if busy == 0 else [3, 20])


@asynccontextmanager
async def _serving(path: Path, listener: socket.socket) -> AsyncIterator[SharedSocketServer]:
    settings = Settings(path=str(path), embedder="none", background=False)
    server = make_server(build_app(Tenants(settings), settings), settings, SharedSocketServer)
    assert isinstance(server, SharedSocketServer)
    serving = asyncio.create_task(server._serve(sockets=[listener.dup()]))
    await _until(lambda: server.started)
    try:
        yield server
    finally:
        server.should_exit = True
        await serving


@asynccontextmanager
async def _connected(listener: socket.socket) -> AsyncIterator[None]:
    _, writer = await asyncio.open_connection(*listener.getsockname())
    try:
        yield
    finally:
        writer.close()


@asynccontextmanager
async def _connected_to(server: SharedSocketServer) -> AsyncIterator[None]:
    """Add an accepted connection to this server, bypassing the shared socket."""
    client, taken = socket.socketpair()
    taken.setblocking(False)
    with client:
        await asyncio.get_running_loop().connect_accepted_socket(server._connection, taken)
        yield


def _connections(server: SharedSocketServer) -> int:
    return len(server.server_state.connections)


async def _until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_SECONDS):
        while not condition():
            await asyncio.sleep(0.001)
