"""What every endpoint works with, and what an endpoint is."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from trivet.contract import Need
from trivet.contract.verb import Method
from trivet.memory.engine import demand
from trivet.serve.http.tenants import Tenants
from trivet.serve.http.thread_pool import ThreadPool
from trivet.settings import Settings
from trivet.trivet import Trivet
from trivet.types import Caller, Right

Handler = Callable[[Request], Awaitable[Response]]
JSON = "application/json"
NDJSON = "application/x-ndjson"
# Nearly every request acts within this time after its key was looked at; to look again would be a query for each.
KEY_GOOD_SECONDS = 1.0


class ServerContext(msgspec.Struct, frozen=True):
    """What every endpoint works with."""

    tenants: Tenants
    pool: ThreadPool
    settings: Settings

    @contextmanager
    def using(self, http: Request) -> Iterator[Trivet]:
        """The store for the caller of a request. One that came slowly or waited long has its key looked at again."""
        caller: Caller = http.state.caller
        if time.monotonic() - http.state.known_at > KEY_GOOD_SECONDS:
            self.tenants.check_still(caller)
        with self.tenants.using(caller) as memory:
            yield memory


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """One address: how it is answered, and what the OpenAPI document says of it."""

    name: str
    method: Method
    path: str
    summary: str
    needs: Right
    request: Any
    in_path: tuple[str, ...] = ()
    in_query: bool = False
    body_type: str = JSON
    result: Any = None
    result_type: str = JSON
    status: int = 200
    tagged: bool = False  # answers with an ETag
    guarded: bool = False  # takes If-Match
    once: bool = False  # takes an Idempotency-Key
    handle: Handler


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """An answer as it can be kept and given again."""

    status: int
    body: bytes = b""
    etag: str | None = None
    replayed: bool = False

    def response(self) -> Response:
        headers = {"ETag": self.etag, "Cache-Control": "private, no-cache"} if self.etag else {}
        headers |= {"Idempotent-Replayed": "true"} if self.replayed else {}
        return Response(self.body, self.status, headers, JSON if self.body else None)


def caller_of(http: Request, needs: Need) -> Caller:
    """Who asks, if they may. It is checked before the body is read; performing the verb checks it again."""
    caller = http.state.caller
    assert isinstance(caller, Caller)
    demand(caller, needs)
    return caller


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
