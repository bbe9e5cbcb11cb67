"""Puts the server together: who is let in, what each address does, and what is said where there is none."""

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
    """The application. It closes the stores of its tenants when it ends. `links` are those that sign in to the page.

    `neighbours` are the other processes of the server, if there are any.
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
        else:  # what still runs uses the stores; the end of the process takes both
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
    app.router.redirect_slashes = False  # an address with a slash too many is none of ours
    app.state.unfinished = False
    app.state.news = news
    return app


def _finished(context: ServerContext, streams: Streams) -> bool:
    """Whether all that was accepted is done, within the time that the end may take."""
    seconds = context.settings.server_shutdown_seconds
    done = [streams.close(seconds), context.pool.close(seconds)]
    if not all(done):
        logger.error("Requests were still being worked on after %s s; they are cut off.", seconds)
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
    """A server on loopback answers for this machine's own names alone, unless others are named."""
    return (*LOOPBACK_NAMES, *settings.server_hosts) if is_loopback(host) else settings.server_hosts


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, TrivetError)
    return problem_response(error, request.state.request_id)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        message = f"{request.method} is not possible here; the header Allow says what is."
    else:
        message = "There is nothing at this address. GET /openapi.json lists what there is."
    return problem_response(
        RouteNotFound(error.status_code, message, error.headers or {}), request.state.request_id
    )
