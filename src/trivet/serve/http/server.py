"""The process: a socket, uvicorn, logs, and an end that finishes what was accepted."""

from __future__ import annotations

import logging
import os
import socket
import sys
from types import FrameType

import msgspec
import uvicorn
from starlette.applications import Starlette

from trivet.errors import InvalidInput
from trivet.serve.http.app import build_app
from trivet.serve.http.connection import Connection
from trivet.serve.http.memory_arenas import share_arenas
from trivet.serve.http.neighbours import Neighbours
from trivet.serve.http.sign_in import Links
from trivet.serve.http.tenants import Tenants
from trivet.settings import Settings

KEEP_ALIVE_SECONDS = 30
LONGEST_HEAD = 32 * 1024
KILLED = 1
# How many ports after the wanted one are tried where any will do.
PORTS_TRIED = 100


class Server(uvicorn.Server):
    """The first signal ends it well; the second at once, which the store survives like any other end."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            os._exit(KILLED)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Laptops that wait for news are not waited for."""
        app = self.config.app
        if isinstance(app, Starlette):
            app.state.news.end()
        await super().shutdown(sockets)


def listen(host: str, port: int, any_port: bool = False) -> socket.socket:
    """A socket at the address, or at the next free port after it."""
    for candidate in range(port, min(port + PORTS_TRIED, 65536) if any_port else port + 1):
        try:
            return _bound(host, candidate)
        except OSError as error:
            reason = error.strerror or str(error)
    raise InvalidInput(f"Cannot listen on {host}:{port}: {reason}. Give another --host or --port.")


def for_server(settings: Settings) -> Settings:
    """As many recalls search at the same time as there are threads to ask for them."""
    return msgspec.structs.replace(settings, recalls_at_once=max(settings.recalls_at_once, settings.server_threads))


def run(
    tenants: Tenants,
    settings: Settings,
    listener: socket.socket,
    host: str,
    links: Links | None = None,
    log_access: bool = True,
    neighbours: Neighbours | None = None,
    kind: type[Server] = Server,
) -> None:
    """Serves until a signal comes, then finishes what was accepted and closes the tenants."""
    set_up_logs(log_access)
    share_arenas()
    app = build_app(tenants, settings, host, links, neighbours)
    server_of(app, settings, kind).run(sockets=[listener])
    if app.state.unfinished:  # Python would wait for its threads, which have had their time
        os._exit(KILLED)


def server_of(app: Starlette, settings: Settings, kind: type[Server] = Server) -> Server:
    return kind(
        uvicorn.Config(
            app,
            http=Connection,
            proxy_headers=False,  # nothing here goes by where a proxy says a request came from
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=settings.server_shutdown_seconds,
            h11_max_incomplete_event_size=LONGEST_HEAD,
            reset_contextvars=True,
        )
    )


def _bound(host: str, port: int) -> socket.socket:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    # With its protocol: asyncio switches Nagle's delay, which would cost 40 ms an answer, off only where it sees TCP.
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # elsewhere it would let two processes share the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def set_up_logs(log_access: bool) -> None:
    """Access lines are JSON as they are. Libraries that quote what they received stay silent."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(logging.Formatter("%(message)s"))
    access = logging.getLogger("trivet.access")
    access.setLevel(logging.INFO if log_access else logging.WARNING)
    access.addHandler(lines)
    access.propagate = False
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
