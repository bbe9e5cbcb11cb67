"""MCP over streamable HTTP: each tool call acts as the caller whose key came with it.

Stateless, because a session would tie an agent to one process.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeVar

import anyio
from anyio.abc import TaskGroup, TaskStatus
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trivet.serve.http.endpoints.endpoint import EndpointRoute, ServerContext, read_body
from trivet.serve.mcp.listings import REVEAL_VARIABLE
from trivet.trivet import Trivet

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

PATH = "/mcp"
T = TypeVar("T")

_request: ContextVar[Request] = ContextVar("request")


class CallerMemory:
    def __init__(self, context: ServerContext) -> None:
        self._context = context

    async def run(self, function: Callable[[Trivet], T], writes: bool = False) -> T:
        request = _request.get()

        def act() -> T:
            with self._context.using(request) as memory:
                return function(memory)

        return await self._context.pool.run(act, "write" if writes else "read")


class McpEndpoint:
    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._settings = context.settings
        self._loading = asyncio.Lock()
        self._mcp_app: ASGIApp | None = None
        self._tasks: TaskGroup | None = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with anyio.create_task_group() as self._tasks:
            yield
            self._tasks.cancel_scope.cancel()

    def address(self) -> EndpointRoute:
        return EndpointRoute(PATH, {"POST": self._handle})

    async def _handle(self, request: Request) -> Response:
        """Read the body first, within our limits: the library would wait forever."""
        body = await read_body(
            request, self._settings.server_request_bytes, self._settings.server_request_seconds
        )
        library = await self._loaded_app()
        _request.set(request)
        return _ForwardedResponse(library, body)

    async def _loaded_app(self) -> ASGIApp:
        async with self._loading:
            if self._mcp_app is None:
                assert self._tasks is not None, "requests come only while the server runs"
                self._mcp_app = await self._tasks.start(self._run_library)
            return self._mcp_app

    async def _run_library(self, *, task_status: TaskStatus[ASGIApp]) -> None:
        sessions = await anyio.to_thread.run_sync(_load, self._context)
        async with sessions.run():
            task_status.started(sessions.handle_request)
            await anyio.sleep_forever()


def _load(context: ServerContext) -> StreamableHTTPSessionManager:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from trivet.serve.mcp.server import build_server

    reveal = os.environ.get(REVEAL_VARIABLE) == "1"
    server = build_server(CallerMemory(context), reveal, context.settings.categories)
    return StreamableHTTPSessionManager(
        server,
        stateless=True,
        json_response=True,
        max_request_body_size=context.settings.server_request_bytes,
    )


class _ForwardedResponse(Response):
    """An answer that another ASGI application writes."""

    def __init__(self, application: ASGIApp, body: bytes) -> None:
        super().__init__()
        self._application = application
        self._message: Message | None = {"type": "http.request", "body": body, "more_body": False}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def read() -> Message:
            message, self._message = self._message, None
            return message or await receive()

        await self._application(scope, read, send)
