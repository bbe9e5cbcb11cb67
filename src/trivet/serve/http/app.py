"""Assembly of the HTTP application: middleware, routes, lifespan and error answers."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from trivet.errors import TrivetError
from trivet.serve.http.auth import LOOPBACK_NAMES, Authentication, HostCheck, is_loopback
from trivet.serve.http.endpoints.endpoint import Endpoint, ServerContext, endpoint_routes
from trivet.serve.http.endpoints.export_import import Streams, export_import_endpoints
from trivet.serve.http.endpoints.mcp import McpEndpoint
from trivet.serve.http.endpoints.openapi import reference_routes
from trivet.serve.http.endpoints.page import SignInLinks, page_routes
from trivet.serve.http.endpoints.sync import ChangeNotifier, WorkerPeers, sync_routes
from trivet.serve.http.endpoints.verbs import extra_endpoints, verb_endpoints
from trivet.serve.http.errors import RouteNotFound, problem_response
from trivet.serve.http.limits import ThreadPool
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

    `links` sign in to the browser page; `neighbours` are the server's other workers.
    """
    others = neighbours or WorkerPeers()
    metrics = Metrics(tenants.load)
    context = ServerContext(
        tenants, ThreadPool(settings.server_threads, settings.server_request_seconds), settings
    )
    streams = Streams()
    agents = McpEndpoint(context)
    news = ChangeNotifier(context, others)
    endpoints = (
        *extra_endpoints(context),
        *verb_endpoints(context),
        *export_import_endpoints(context, streams),
    )

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
            *_routes(endpoints, context, metrics, agents),
            *page_routes(context, links or SignInLinks()),
            *sync_routes(context, news),
        ],
        middleware=[
            Middleware(RequestLog, metrics=metrics, seconds=settings.server_request_seconds),
            Middleware(HostCheck, names=_names(settings, host)),
            Middleware(
                Authentication,
                tenants=tenants,
                pool=context.pool,
                metrics=metrics,
                settings=settings,
                news=news,
            ),
        ],
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


def _routes(
    endpoints: tuple[Endpoint, ...],
    context: ServerContext,
    metrics: Metrics,
    agents: McpEndpoint,
) -> list[BaseRoute]:
    return [
        *endpoint_routes(endpoints),
        *health_routes(context, metrics),
        *reference_routes(endpoints),
        agents.address(),
    ]


def _names(settings: Settings, host: str) -> tuple[str, ...]:
    return (*LOOPBACK_NAMES, *settings.server_hosts) if is_loopback(host) else settings.server_hosts


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
