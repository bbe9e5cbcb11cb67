"""The endpoints of the contract: each operation at the address that the table of routes gives it."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trivet import contract
from trivet.contract import BY_NAME, Operation
from trivet.errors import Conflict
from trivet.routes import ROUTES, Route
from trivet.serve.http.endpoint import Desk, Endpoint, Handler, Reply, caller_of
from trivet.serve.http.errors import Malformed, OutOfDate
from trivet.serve.http.etags import check_unchanged, etag, expected_revisions, is_known
from trivet.serve.http.idempotency import act_once, errand_of
from trivet.serve.http.parse_request import from_body, from_query
from trivet.trivet import Trivet
from trivet.types import Memory

# Those whose answer is a memory as it now is; `reveal` gives what must not be kept anywhere.
TAGGED = frozenset(("get", "edit", "restore", "forget"))
GUARDED = frozenset(("edit", "restore", "forget"))


def contract_endpoints(desk: Desk) -> tuple[Endpoint, ...]:
    return tuple(_endpoint(desk, route) for route in ROUTES)


def _endpoint(desk: Desk, route: Route) -> Endpoint:
    operation = BY_NAME[route.operation]
    second = any(other.operation == route.operation for other in ROUTES[: ROUTES.index(route)])
    return Endpoint(
        name=f"{operation.name}_by_{route.method.lower()}" if second else operation.name,
        method=route.method,
        path=route.path,
        summary=operation.summary,
        needs=operation.needs,
        request=operation.request,
        in_path=route.in_path,
        in_query=route.in_query,
        result=operation.result,
        status=route.status,
        tagged=operation.name in TAGGED,
        guarded=operation.name in GUARDED,
        once=_acts_once(operation),
        handle=_handler(desk, route, operation),
    )


def _handler(desk: Desk, route: Route, operation: Operation) -> Handler:
    async def handle(request: Request) -> Response:
        caller = caller_of(request, operation.needs)
        arguments = await arguments_of(request, operation.request, route.in_query, desk)
        expected = expected_revisions(request) if operation.name in GUARDED else None
        errand = errand_of(request, request.state.body) if _acts_once(operation) else None
        if errand and operation.name == "remember" and arguments.get("id") is None:
            arguments["id"] = errand.id()

        def act() -> Reply:
            memory = desk.house.trivet(caller)
            return act_once(desk, memory, errand, lambda: _act(memory, operation, route, arguments, expected))

        reply = await desk.calls.run(act)
        if operation.name == "get" and reply.etag and is_known(request, reply.etag):
            return Reply(status=304, etag=reply.etag).response()
        return reply.response()

    return handle


def _acts_once(operation: Operation) -> bool:
    """A DELETE too: repeated, it would find nothing. What `reveal` shows must not be kept."""
    return not operation.read_only and operation.name != "reveal"


def _act(
    memory: Trivet, operation: Operation, route: Route, arguments: dict[str, Any], expected: frozenset[int] | None
) -> Reply:
    revision = check_unchanged(memory, arguments["id"], expected) if operation.name in GUARDED else None
    if revision is not None and operation.name == "edit":
        arguments = {"if_revision": revision, **arguments}  # so that an edit in between is noticed too
    try:
        result = getattr(memory, operation.name)(**arguments)
    except Conflict as error:
        if revision is None:
            raise
        raise OutOfDate(str(error)) from None  # somebody was faster since we looked
    if route.status == 204:
        return Reply(status=204)
    body = msgspec.json.encode(result)
    # What was revealed must not be kept by anybody in between.
    tagged = isinstance(result, Memory) and operation.name in TAGGED and not arguments.get("reveal")
    return Reply(status=route.status, body=body, etag=etag(result, body) if tagged else None)


async def arguments_of(request: Request, kind: Any, in_query: bool, desk: Desk, checked: bool = True) -> dict[str, Any]:
    """From the path, and from the query or the body; each field stands in one place alone."""
    settings = desk.settings
    if in_query:
        request.state.body = b""
        given = from_query(kind, request.scope["query_string"])
    else:
        given = await from_body(request, settings.server_request_bytes, settings.server_request_seconds)
    twice = sorted(given.keys() & request.path_params.keys())
    if twice:
        raise Malformed(f"{twice[0]}: it stands in the path already. Leave it out elsewhere.")
    arguments = {**given, **request.path_params}
    if checked:
        contract.check(kind, arguments)
    return arguments
