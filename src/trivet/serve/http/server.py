"""The HTTP server: the application, its socket, uvicorn, logs and graceful shutdown.

`BackgroundServer` runs the same server in a thread, for `trivet open`.
"""

from __future__ import annotations

import ctypes
import logging
import os
import socket
import sys
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import FrameType

import msgspec
import uvicorn
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from trivet.errors import InvalidInput, StoreError, TrivetError
from trivet.memory.engine import Shared
from trivet.serve.http.auth import LOOPBACK_NAMES, Authentication, HostCheck, is_loopback
from trivet.serve.http.endpoints.endpoint import ServerContext, endpoint_routes
from trivet.serve.http.endpoints.export_import import Streams, export_import_endpoints
from trivet.serve.http.endpoints.mcp import McpEndpoint
from trivet.serve.http.endpoints.openapi import reference_routes
from trivet.serve.http.endpoints.page import SignInLinks, link_to, page_routes
from trivet.serve.http.endpoints.sync import ChangeNotifier, WorkerPeers, sync_routes
from trivet.serve.http.endpoints.verbs import extra_endpoints, verb_endpoints
from trivet.serve.http.errors import RouteNotFound, problem_response
from trivet.serve.http.limits import LimitedConnection, ThreadPool
from trivet.serve.http.monitoring import Metrics, RequestLog, health_routes
from trivet.serve.http.tenants import Tenants
from trivet.settings import Settings

logger = logging.getLogger("trivet.serve.http")


def build_app(
    tenants: Tenants,
    settings: Settings,
    host: str = "127.0.0.1",
    links: SignInLinks | None = None,
    neighbours: WorkerPeers | None = None,
) -> Starlette:
    """Build the application, which closes its tenants' stores at shutdown.

    `links` sign in to the page; `neighbours` are the server's other workers.
    """
    others = neighbours or WorkerPeers()
    metrics = Metrics(tenants.load)
    context = ServerContext(
        tenants, ThreadPool(settings.server_threads, settings.server_request_seconds), settings
    )
    streams = Streams()
    agents = McpEndpoint(context)
    news = ChangeNotifier(context, others)

    @asynccontextmanager
    async def running(app: Starlette) -> AsyncIterator[None]:
        async with agents.running():
            with others.listening(news.heard):
                yield
        if _finished(context, streams):
            tenants.close()
        else:  # running work still uses the stores; the end of the process closes both
            app.state.unfinished = True

    app = Starlette(
        lifespan=running,
        routes=[
            *_api_routes(context, streams, metrics),
            agents.address(),
            *page_routes(context, links or SignInLinks()),
            *sync_routes(context, news),
        ],
        middleware=_middleware(context, metrics, news, host),
        exception_handlers={HTTPException: _no_route, TrivetError: _refused},
    )
    app.router.redirect_slashes = False  # a path with a trailing slash is unknown
    app.state.unfinished = False
    app.state.news = news
    return app


def _finished(context: ServerContext, streams: Streams) -> bool:
    seconds = context.settings.server_shutdown_seconds
    done = [streams.close(seconds), context.pool.close(seconds)]
    if not all(done):
        logger.error("Requests were still running after %s s; they are cut off.", seconds)
    return all(done)


def _api_routes(context: ServerContext, streams: Streams, metrics: Metrics) -> list[BaseRoute]:
    endpoints = (
        *extra_endpoints(context),
        *verb_endpoints(context),
        *export_import_endpoints(context, streams),
    )
    return [
        *endpoint_routes(endpoints),
        *health_routes(context, metrics),
        *reference_routes(endpoints),
    ]


def _middleware(
    context: ServerContext, metrics: Metrics, news: ChangeNotifier, host: str
) -> list[Middleware]:
    settings = context.settings
    own = is_loopback(host)
    names = (*LOOPBACK_NAMES, *settings.server_hosts) if own else settings.server_hosts
    return [
        Middleware(RequestLog, metrics=metrics, seconds=settings.server_request_seconds),
        Middleware(HostCheck, names=names),
        Middleware(
            Authentication,
            tenants=context.tenants,
            pool=context.pool,
            metrics=metrics,
            settings=settings,
            news=news,
        ),
    ]


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, TrivetError)
    return problem_response(error, request.state.request_id)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        message = f"{request.method} is not allowed here; see the header Allow."
    else:
        message = "There is nothing at this address. GET /openapi.json lists all addresses."
    return problem_response(
        RouteNotFound(error.status_code, message, error.headers or {}), request.state.request_id
    )


MAX_ARENAS = 2
# M_ARENA_MAX in malloc.h.
_M_ARENA_MAX = -8
# A user who sets this has chosen a limit.
_USER_VARIABLE = "MALLOC_ARENA_MAX"


def limit_arenas() -> bool:
    """Limit glibc's memory arenas before threads start; return whether it worked.

    glibc keeps freed memory in up to eight arenas per core.
    """
    if os.name != "posix" or _USER_VARIABLE in os.environ:
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library
        return False
    return bool(mallopt(_M_ARENA_MAX, MAX_ARENAS))


KEEP_ALIVE_SECONDS = 30
MAX_HEAD_BYTES = 32 * 1024
EXIT_KILLED = 1
MAX_PORTS_TRIED = 100


class Server(uvicorn.Server):
    """uvicorn server that ends gracefully at the first signal, at once at the second."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self.should_exit:
            os._exit(EXIT_KILLED)
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        app = self.config.app
        if isinstance(app, Starlette):
            app.state.news.end()
        await super().shutdown(sockets)


def listen(host: str, port: int, any_port: bool = False) -> socket.socket:
    """Return a socket at the address, or with `any_port` at the next free one."""
    for candidate in range(port, min(port + MAX_PORTS_TRIED, 65536) if any_port else port + 1):
        try:
            return _bind(host, candidate)
        except OSError as error:
            reason = error.strerror or str(error)
    raise InvalidInput(
        f"Cannot listen on {host}:{port}: {reason}. Choose another --host or --port."
    )


def server_settings(settings: Settings) -> Settings:
    return msgspec.structs.replace(
        settings, recalls_at_once=max(settings.recalls_at_once, settings.server_threads)
    )


def run(
    tenants: Tenants,
    settings: Settings,
    listener: socket.socket,
    host: str,
    links: SignInLinks | None = None,
    log_access: bool = True,
    neighbours: WorkerPeers | None = None,
    kind: type[Server] = Server,
) -> None:
    """Serve until a signal, then finish accepted work and close the tenants."""
    set_up_logs(log_access)
    limit_arenas()
    app = build_app(tenants, settings, host, links, neighbours)
    make_server(app, settings, kind).run(sockets=[listener])
    if app.state.unfinished:  # Python would wait for threads that have used up their time
        os._exit(EXIT_KILLED)


def make_server(app: Starlette, settings: Settings, kind: type[Server] = Server) -> Server:
    return kind(
        uvicorn.Config(
            app,
            http=LimitedConnection,
            proxy_headers=False,  # no code here relies on a proxy's client address
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            timeout_keep_alive=KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=settings.server_shutdown_seconds,
            h11_max_incomplete_event_size=MAX_HEAD_BYTES,
            reset_contextvars=True,
        )
    )


def _bind(host: str, port: int) -> socket.socket:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, address = found[0]
    # With its protocol, or asyncio keeps Nagle's delay, which costs 40 ms per answer.
    listener = socket.socket(family, kind, protocol)
    try:
        if os.name == "posix":  # elsewhere two processes could share the port
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen()
    except BaseException:
        listener.close()
        raise
    return listener


def set_up_logs(log_access: bool) -> None:
    """Log access lines as bare JSON; silence libraries that quote their input."""
    logging.basicConfig(
        stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s"
    )
    lines = logging.StreamHandler(sys.stderr)
    lines.setFormatter(logging.Formatter("%(message)s"))
    access = logging.getLogger("trivet.access")
    access.setLevel(logging.INFO if log_access else logging.WARNING)
    access.addHandler(lines)
    access.propagate = False
    logging.getLogger("mcp").setLevel(logging.CRITICAL)


HOST = "127.0.0.1"
# Next to the port of `trivet serve`; constant, to keep a browser signed in.
PORT = 7374
START_SECONDS = 20.0
POLL_SECONDS = 0.01
END_SECONDS = 10.0


class ActivityMiddleware:
    def __init__(self, app: ASGIApp, note: Callable[[], None]) -> None:
        self._app = app
        self._note = note

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            self._note()
        await self._app(scope, receive, send)


class BackgroundServer:
    """A server in a thread, on loopback only, with the process's `shared` models."""

    def __init__(self, settings: Settings, shared: Shared | None = None) -> None:
        settings = server_settings(settings)
        self.used = time.monotonic()
        self._links = SignInLinks()
        listener = listen(HOST, PORT, any_port=True)
        self._address = f"http://{HOST}:{listener.getsockname()[1]}"
        try:
            app = build_app(Tenants(settings, shared), settings, HOST, self._links)
        except BaseException:
            listener.close()
            raise
        app.add_middleware(ActivityMiddleware, note=self._touch)
        self._server = make_server(app, settings)
        serve = {"sockets": [listener]}
        self._thread = threading.Thread(
            target=self._server.run, kwargs=serve, name="trivet-page", daemon=True
        )
        self._thread.start()
        self._wait()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive()

    def link(self) -> str:
        self._touch()
        return link_to(self._address, self._links)

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(END_SECONDS)

    def _touch(self) -> None:
        self.used = time.monotonic()

    def _wait(self) -> None:
        limit = time.monotonic() + START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > limit:
                self._server.should_exit = True
                raise StoreError("The server of the page did not start. Try `trivet serve`.")
            time.sleep(POLL_SECONDS)
