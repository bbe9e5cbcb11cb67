"""Prometheus metrics, the request log and the health checks.

Metric labels never contain text from users.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime

import msgspec
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
)
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from starlette.datastructures import MutableHeaders
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from trivet.common.breaker import CircuitBreaker, breakers
from trivet.errors import TrivetError
from trivet.models.embed.batching import MAX_BATCH, batch_sizes
from trivet.search.concurrency import RecallLoad
from trivet.serve.failures import log_failure
from trivet.serve.http.endpoints.endpoint import JSON, EndpointRoute, ServerContext, authenticate
from trivet.serve.http.errors import failure_response, problem_response

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
# Shared by the workers. prometheus_client reads it on import.
METRICS_FOLDER_VARIABLE = "PROMETHEUS_MULTIPROC_DIR"
# Histogram buckets, from a short listing to a large import.
_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60)


_LABELS = ("purpose", "model")


class Metrics:
    """Metrics of one server; workers count together, and any of them reports the sum."""

    def __init__(self, load: RecallLoad) -> None:
        together = METRICS_FOLDER_VARIABLE in os.environ
        registry = CollectorRegistry()
        self.registry = CollectorRegistry() if together else registry
        self._requests = Counter(
            "trivet_http_requests",
            "Requests answered.",
            ["route", "method", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "trivet_http_request_seconds",
            "Time from a request's head to the end of its answer.",
            ["route", "method"],
            buckets=_SECONDS,
            registry=registry,
        )
        self.running = Gauge(
            "trivet_http_requests_running",
            "Requests in progress.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self.limited = Counter(
            "trivet_http_rate_limited",
            "Requests refused because their key exceeded its rate.",
            registry=registry,
        )
        if together:
            MultiProcessCollector(self.registry)  # type: ignore[no-untyped-call]
            return
        ProcessCollector(registry=registry)
        PlatformCollector(registry=registry)
        registry.register(_BatchSizes())
        registry.register(_YieldedRecalls(load))
        registry.register(_Endpoints())

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route, method).observe(seconds)

    def text(self) -> bytes:
        return generate_latest(self.registry)


class _BatchSizes(Collector):
    def collect(self) -> Iterator[HistogramMetricFamily]:
        sizes = batch_sizes()
        bounds = [2**power for power in range(MAX_BATCH.bit_length())]
        buckets = [
            (str(float(bound)), sum(sizes[size] for size in sizes if size <= bound))
            for bound in bounds
        ]
        yield HistogramMetricFamily(
            "trivet_query_embedding_batch_size",
            "Queries embedded together.",
            buckets=[*buckets, ("+Inf", sizes.total())],
            sum_value=sum(size * count for size, count in sizes.items()),
        )


class _YieldedRecalls(Collector):
    def __init__(self, load: RecallLoad) -> None:
        self._load = load

    def collect(self) -> Iterator[CounterMetricFamily]:
        help_text = (
            "Recalls and saves that skipped reading their texts because others needed a core."
        )
        yield CounterMetricFamily("trivet_recall_gave_way", help_text, value=self._load.shed_count)


class _Endpoints(Collector):
    """Remote models by purpose and model, not by address, which may hold a key."""

    def collect(self) -> Iterator[Metric]:
        silent = GaugeMetricFamily(
            "trivet_endpoint_silent",
            "1 while the endpoint does not answer and is not called.",
            labels=_LABELS,
        )
        opened = CounterMetricFamily(
            "trivet_endpoint_fell_silent",
            "How often the endpoint stopped answering.",
            labels=_LABELS,
        )
        refused = CounterMetricFamily(
            "trivet_endpoint_not_asked",
            "Calls skipped because the endpoint was silent.",
            labels=_LABELS,
        )
        by_labels: dict[tuple[str, str], list[CircuitBreaker]] = {}
        for breaker in breakers():
            by_labels.setdefault((breaker.name.purpose, breaker.name.model), []).append(breaker)
        for labels, found in by_labels.items():
            silent.add_metric(labels, float(any(one.state != "closed" for one in found)))
            opened.add_metric(labels, sum(one.opened for one in found))
            refused.add_metric(labels, sum(one.refused for one in found))
        yield from (silent, opened, refused)


METRICS_PATH = "/metrics"


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
# Others count as "other": clients can invent methods, and labels are kept forever.
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))
# nginx's status for a client that left.
CLIENT_CLOSED_REQUEST = 499
NO_ROUTE = "none"


class Exchange:
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
            raise ClientDisconnect from None  # the client no longer reads

    @property
    def route(self) -> str:
        return getattr(self._scope.get("route"), "path", NO_ROUTE)

    @property
    def method(self) -> str:
        method: str = self._scope["method"]
        return method if method in METHODS else "other"

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._started

    def line(self) -> str:
        """Return the access log line, without ids, query, body or key."""
        caller = self._scope["state"].get("caller")
        return msgspec.json.encode(
            {
                "at": datetime.now(UTC).isoformat(timespec="milliseconds"),
                "request": self.id,
                "method": self.method,
                "route": self.route,
                "status": self.status or CLIENT_CLOSED_REQUEST,
                "ms": round(self.seconds * 1000, 1),
                "tenant": caller.tenant if caller else None,
                "user": caller.user if caller else None,
            }
        ).decode()


class RequestLog:
    def __init__(self, app: ASGIApp, metrics: Metrics, seconds: float) -> None:
        self._app = app
        self._seconds = seconds  # seconds a client may take for each part of its answer
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = Exchange(scope, send, self._seconds)
        with self._metrics.running.track_inprogress():
            await self._answer(scope, receive, exchange)
        self._metrics.answered(
            exchange.route,
            exchange.method,
            exchange.status or CLIENT_CLOSED_REQUEST,
            exchange.seconds,
        )
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
            logger.error(
                "Request %s failed in the middle of its answer: %s",
                exchange.id,
                type(error).__name__,
            )
            raise
        except Exception as error:
            log_failure(f"Request {exchange.id}", error)
            if exchange.status is not None:
                raise  # the answer has started, so only breaking the connection is left
            await failure_response(exchange.id)(scope, receive, exchange.send)


# How long a successful store check is valid.
READY_CACHE_SECONDS = 1.0
OK = b'{"status":"ok"}'


def health_routes(context: ServerContext, metrics: Metrics) -> list[EndpointRoute]:
    async def alive(request: Request) -> Response:
        return Response(OK, media_type=JSON)

    looked = [-READY_CACHE_SECONDS]

    async def ready(request: Request) -> Response:
        """Cache the result, so that anonymous callers cannot load the store."""
        if time.monotonic() - looked[0] >= READY_CACHE_SECONDS:
            await context.pool.run(context.tenants.check, "door")
            looked[0] = time.monotonic()
        return Response(OK, media_type=JSON)

    async def numbers(request: Request) -> Response:
        # Without a caller, it came over loopback, which the settings allow.
        if hasattr(request.state, "caller"):
            authenticate(request, "admin")
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    return [
        EndpointRoute("/healthz", {"GET": alive}),
        EndpointRoute("/readyz", {"GET": ready}),
        EndpointRoute(METRICS_PATH, {"GET": numbers}),
    ]
