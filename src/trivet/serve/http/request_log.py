"""The first and last to see a request: it gives each an id, counts and logs it, and lets no error out untold."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from datetime import UTC, datetime

import msgspec
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trivet.errors import TrivetError
from trivet.serve.failures import log_failure
from trivet.serve.http.errors import failure_response, problem_response
from trivet.serve.http.metrics import Metrics

logger = logging.getLogger("trivet.serve.http")
access = logging.getLogger("trivet.access")

HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
# Anyone can send a made-up method; as a label each would be kept for ever.
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
# What a web server writes where the client went away before there was an answer.
GONE = 499
NO_ROUTE = "none"


class Exchange:
    """One request and what is known of its answer so far."""

    def __init__(self, scope: Scope, send: Send, seconds: float) -> None:
        self._seconds = seconds
        self.id = str(uuid.uuid4())
        self.status: int | None = None
        self._scope = scope
        self._send = send
        self._started = time.perf_counter()
        state = scope.setdefault("state", {})
        state["request_id"] = self.id

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers["X-Request-Id"] = self.id
            for name, value in HEADERS.items():
                headers.setdefault(name, value)
        try:
            async with asyncio.timeout(self._seconds):
                await self._send(message)
        except TimeoutError:
            raise ClientDisconnect from None  # it takes nothing any longer, and would be waited for in vain

    @property
    def route(self) -> str:
        """The template, which names no memory."""
        return getattr(self._scope.get("route"), "path", NO_ROUTE)

    @property
    def method(self) -> str:
        method: str = self._scope["method"]
        return method if method in METHODS else "other"

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started

    def line(self) -> str:
        """Neither the address with its ids and query, nor the body, nor the key."""
        caller = self._scope["state"].get("caller")
        return msgspec.json.encode(
            {
                "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "request": self.id,
                "method": self.method,
                "route": self.route,
                "status": self.status or GONE,
                "ms": round(self.seconds * 1000, 1),
                "tenant": caller.tenant if caller else None,
                "user": caller.user if caller else None,
            }
        ).decode()


class RequestLog:
    def __init__(self, app: ASGIApp, metrics: Metrics, seconds: float) -> None:
        self._app = app
        self._seconds = seconds  # how long a client may take for each part of its answer
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = Exchange(scope, send, self._seconds)
        with self._metrics.running.track_inprogress():
            await self._answer(scope, receive, exchange)
        self._metrics.answered(exchange.route, exchange.method, exchange.status or GONE, exchange.seconds)
        access.info(exchange.line())

    async def _answer(self, scope: Scope, receive: Receive, exchange: Exchange) -> None:
        try:
            await self._app(scope, receive, exchange.send)
        except ClientDisconnect:
            return
        except TrivetError as error:
            if exchange.status is None:
                await problem_response(error, exchange.id)(scope, receive, exchange.send)
                return
            logger.error("Request %s ended in the middle of its answer: %s", exchange.id, type(error).__name__)
            raise
        except Exception as error:
            log_failure(f"Request {exchange.id}", error)
            if exchange.status is not None:
                raise  # the answer is under way: that it breaks off is all that can be told
            await failure_response(exchange.id)(scope, receive, exchange.send)
