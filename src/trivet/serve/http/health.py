"""For monitoring: is the process alive, can it reach its store, and what has it done."""

from __future__ import annotations

import time

from starlette.requests import Request
from starlette.responses import Response

from trivet.serve.http.auth import METRICS
from trivet.serve.http.endpoint import JSON, Address, ServerContext, caller_of
from trivet.serve.http.metrics import CONTENT_TYPE, Metrics

# For so long a store that could be reached is taken for reachable.
LOOK_SECONDS = 1.0
OK = b'{"status":"ok"}'


def health_routes(context: ServerContext, metrics: Metrics) -> list[Address]:
    async def alive(request: Request) -> Response:
        return Response(OK, media_type=JSON)

    looked = [-LOOK_SECONDS]

    async def ready(request: Request) -> Response:
        """Needs no key, so it must not be a way to make the store work."""
        if time.monotonic() - looked[0] >= LOOK_SECONDS:
            await context.pool.run(context.tenants.check, "door")
            looked[0] = time.monotonic()
        return Response(OK, media_type=JSON)

    async def numbers(request: Request) -> Response:
        if hasattr(request.state, "caller"):  # else it came over loopback, which the settings allow
            caller_of(request, "admin")
        return Response(metrics.text(), media_type=CONTENT_TYPE)

    return [
        Address("/healthz", {"GET": alive}),
        Address("/readyz", {"GET": ready}),
        Address(METRICS, {"GET": numbers}),
    ]
