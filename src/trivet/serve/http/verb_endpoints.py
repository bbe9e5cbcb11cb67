"""The endpoints of the contract: each verb at the addresses that its declaration gives."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trivet.contract import VERBS, Edit, Remember, Route, Verb, check
from trivet.contract import Request as VerbRequest
from trivet.contract.verb import Parameters
from trivet.errors import Conflict
from trivet.serve.http.endpoint import Endpoint, Handler, Reply, ServerContext, caller_of
from trivet.serve.http.errors import Malformed, OutOfDate
from trivet.serve.http.etags import check_unchanged, etag, expected_revisions, is_known
from trivet.serve.http.idempotency import act_once, idempotent_request
from trivet.serve.http.parse_request import from_body, from_query
from trivet.trivet import Trivet


def verb_endpoints(context: ServerContext) -> tuple[Endpoint, ...]:
    return tuple(_endpoint(context, verb, route) for verb in VERBS.values() for route in verb.routes)


def _endpoint(context: ServerContext, verb: Verb, route: Route) -> Endpoint:
    first = route == verb.routes[0]
    assert verb.needs != "store", "what needs the store itself has no address"
    return Endpoint(
        name=verb.name if first else f"{verb.name}_by_{route.method.lower()}",
        method=route.method,
        path=route.path,
        summary=verb.summary,
        needs=verb.needs,
        request=verb.request,
        in_path=route.in_path,
        in_query=route.in_query,
        result=verb.result,
        status=route.status,
        tagged=verb.etag,
        guarded=verb.guarded,
        once=verb.acts_once,
        handle=_handler(context, verb, route),
    )


def _handler(context: ServerContext, verb: Verb, route: Route) -> Handler:
    async def handle(http: Request) -> Response:
        caller_of(http, verb.needs)
        http.state.only_read = verb.read_only  # also by POST, as a recall: nobody need be told of it
        request = check(verb.request, await arguments_of(http, verb.request, route.in_query, context))
        expected = expected_revisions(http) if verb.guarded else None
        repeatable = idempotent_request(http, http.state.body) if verb.acts_once else None
        if repeatable and isinstance(request, Remember) and request.id is None:
            request = msgspec.structs.replace(request, id=repeatable.id())

        def act() -> Reply:
            with context.using(http) as memory:
                return act_once(
                    context, memory, repeatable, lambda: _act(memory, verb, route, request, expected), verb.atomic
                )

        reply = await context.pool.run(act, "read" if verb.read_only else "write")
        if verb.read_only and reply.etag and is_known(http, reply.etag):
            return Reply(status=304, etag=reply.etag).response()
        return reply.response()

    return handle


def _act(memory: Trivet, verb: Verb, route: Route, request: VerbRequest[Any], expected: frozenset[int] | None) -> Reply:
    revision = check_unchanged(memory, getattr(request, "id", ""), expected) if verb.guarded else None
    if revision is not None and isinstance(request, Edit) and request.if_revision is None:
        request = msgspec.structs.replace(request, if_revision=revision)  # so that an edit in between is noticed too
    try:
        result = memory.perform(request)
    except Conflict as error:
        if revision is None:
            raise
        raise OutOfDate(str(error)) from None  # another caller was faster since we looked
    if route.status == 204:
        return Reply(status=204)
    body = msgspec.json.encode(result)
    # What was revealed must not be kept by any cache in between.
    tagged = verb.etag and not getattr(request, "reveal", False)
    return Reply(status=route.status, body=body, etag=etag(result, body) if tagged else None)


async def arguments_of(http: Request, kind: type[Parameters], in_query: bool, context: ServerContext) -> dict[str, Any]:
    """From the path, and from the query or the body; each field stands in one place alone. They are not checked yet."""
    settings = context.settings
    if in_query:
        http.state.body = b""
        given = from_query(kind, http.scope["query_string"])
    else:
        given = await from_body(http, settings.server_request_bytes, settings.server_request_seconds)
    twice = sorted(given.keys() & http.path_params.keys())
    if twice:
        raise Malformed(f"{twice[0]}: it stands in the path already. Leave it out elsewhere.")
    return {**given, **http.path_params}
