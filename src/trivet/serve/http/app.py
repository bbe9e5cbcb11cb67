"""Puts the server together: who is let in, what each address does, and what is said where there is none."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from trivet import __version__
from trivet.errors import TrivetError
from trivet.serve.http.auth import Admission
from trivet.serve.http.endpoint import Desk, Endpoint
from trivet.serve.http.errors import NotThere, refusal
from trivet.serve.http.export_import import moving_endpoints
from trivet.serve.http.extra_endpoints import extra_endpoints
from trivet.serve.http.health import health_routes
from trivet.serve.http.hosts import LOOPBACK_NAMES, Hosts, is_loopback
from trivet.serve.http.mcp import McpEndpoint
from trivet.serve.http.metrics import Metrics
from trivet.serve.http.openapi import document
from trivet.serve.http.page import page_routes
from trivet.serve.http.request_log import Reception
from trivet.serve.http.routing import addresses
from trivet.serve.http.streams import Streams
from trivet.serve.http.tenants import House
from trivet.serve.http.thread_pool import Calls
from trivet.serve.http.verb_endpoints import contract_endpoints
from trivet.settings import Settings

logger = logging.getLogger("trivet.serve.http")


def build_app(house: House, settings: Settings, host: str = "127.0.0.1") -> FastAPI:
    """The application. It closes the house when it ends."""
    metrics = Metrics()
    desk = Desk(house, Calls(settings.server_threads, settings.server_request_seconds), settings)
    streams = Streams()
    agents = McpEndpoint(desk)
    endpoints = (*extra_endpoints(desk), *contract_endpoints(desk), *moving_endpoints(desk, streams))
    specification = document(endpoints)

    @asynccontextmanager
    async def running(app: FastAPI) -> AsyncIterator[None]:
        async with agents.running():
            yield
        if _finished(desk, streams):
            house.close()
        else:  # what still runs uses the house; the end of the process takes both
            app.state.unfinished = True

    app = FastAPI(
        title="Trivet",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=running,
        routes=_routes(endpoints, desk, metrics, specification, agents),
        middleware=[
            Middleware(Reception, metrics=metrics, seconds=settings.server_request_seconds),
            Middleware(Hosts, names=_names(settings, host)),
            Middleware(Admission, house=house, calls=desk.calls, metrics=metrics, settings=settings),
        ],
        exception_handlers={HTTPException: _no_route, TrivetError: _refused},
    )
    app.state.unfinished = False
    app.openapi = lambda: specification  # type: ignore[method-assign]  # FastAPI's own would know nothing of the contract
    return app


def _finished(desk: Desk, streams: Streams) -> bool:
    """Whether all that was accepted is done, within the time that the end may take."""
    seconds = desk.settings.server_shutdown_seconds
    done = [streams.close(seconds), desk.calls.close(seconds)]
    if not all(done):
        logger.error("Requests were still being worked on after %s s; they are cut off.", seconds)
    return all(done)


def _routes(
    endpoints: tuple[Endpoint, ...], desk: Desk, metrics: Metrics, specification: dict[str, object], agents: McpEndpoint
) -> list[BaseRoute]:
    return [
        *addresses(endpoints),
        *health_routes(desk, metrics),
        *page_routes(endpoints, specification),
        agents.address(),
    ]


def _names(settings: Settings, host: str) -> tuple[str, ...]:
    """A server on loopback answers for this machine's own names alone, unless others are named."""
    return (*LOOPBACK_NAMES, *settings.server_hosts) if is_loopback(host) else settings.server_hosts


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, TrivetError)
    return refusal(error, request.state.request_id)


async def _no_route(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        message = f"{request.method} is not possible here; the header Allow says what is."
    else:
        message = "There is nothing at this address. GET /openapi.json lists what there is."
    return refusal(NotThere(error.status_code, message, error.headers or {}), request.state.request_id)
