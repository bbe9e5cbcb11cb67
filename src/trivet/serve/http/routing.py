"""One address with all its methods, so that 405 can name them, known by its template to the log and the metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from trivet.serve.http.endpoint import Endpoint, Handler


class Address(Route):
    def __init__(self, path: str, handlers: Mapping[str, Handler]) -> None:
        async def handle(request: Request) -> Response:
            return await handlers["GET" if request.method == "HEAD" else request.method](request)

        super().__init__(path, handle, methods=list(handlers))

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        return match, child if match is Match.NONE else {**child, "route": self}


def addresses(endpoints: Sequence[Endpoint]) -> list[Address]:
    handlers: dict[str, dict[str, Handler]] = {}
    for endpoint in endpoints:
        handlers.setdefault(endpoint.path, {})[endpoint.method] = endpoint.handle
    return [Address(path, methods) for path, methods in handlers.items()]
