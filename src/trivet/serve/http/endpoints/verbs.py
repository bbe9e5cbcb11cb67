"""Endpoints of the contract's verbs, and of batch remember and diff."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trivet.contract import VERBS, Edit, Parameters, Remember, Route, Verb, check
from trivet.contract import Request as VerbRequest
from trivet.contract.parameters import Id, Positive
from trivet.errors import Conflict, InvalidInput
from trivet.serve.http.endpoints.endpoint import (
    Endpoint,
    Handler,
    Reply,
    ServerContext,
    act_once,
    authenticate,
    check_unchanged,
    etag,
    expected_revisions,
    from_body,
    from_query,
    idempotent_request,
    is_known,
)
from trivet.serve.http.errors import Malformed, OutOfDate
from trivet.trivet import Trivet
from trivet.types import Remembered


def verb_endpoints(context: ServerContext) -> tuple[Endpoint, ...]:
    return tuple(
        _endpoint(context, verb, route) for verb in VERBS.values() for route in verb.routes
    )


def _endpoint(context: ServerContext, verb: Verb, route: Route) -> Endpoint:
    first = route == verb.routes[0]
    assert verb.needs != "store", "verbs that need the store itself have no address"
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
        once=verb.is_deduplicated,
        handle=_handler(context, verb, route),
    )


def _handler(context: ServerContext, verb: Verb, route: Route) -> Handler:
    async def handle(http: Request) -> Response:
        authenticate(http, verb.needs)
        # A recall is a read although it uses POST.
        http.state.only_read = verb.read_only
        request = check(
            verb.request, await arguments_of(http, verb.request, route.in_query, context)
        )
        expected = expected_revisions(http) if verb.guarded else None
        repeatable = idempotent_request(http, http.state.body) if verb.is_deduplicated else None
        if repeatable and isinstance(request, Remember) and request.id is None:
            request = msgspec.structs.replace(request, id=repeatable.id())

        def act() -> Reply:
            with context.using(http) as memory:
                return act_once(
                    context,
                    memory,
                    repeatable,
                    lambda: _act(memory, verb, route, request, expected),
                    verb.atomic,
                )

        reply = await context.pool.run(act, "read" if verb.read_only else "write")
        if verb.read_only and reply.etag and is_known(http, reply.etag):
            return Reply(status=304, etag=reply.etag).response()
        return reply.response()

    return handle


def _act(
    memory: Trivet,
    verb: Verb,
    route: Route,
    request: VerbRequest[Any],
    expected: frozenset[int] | None,
) -> Reply:
    revision = (
        check_unchanged(memory, getattr(request, "id", ""), expected) if verb.guarded else None
    )
    if revision is not None and isinstance(request, Edit) and request.if_revision is None:
        # To notice concurrent edits too.
        request = msgspec.structs.replace(request, if_revision=revision)
    try:
        result = memory.perform(request)
    except Conflict as error:
        if revision is None:
            raise
        raise OutOfDate(str(error)) from None  # another caller wrote after our check
    if route.status == 204:
        return Reply(status=204)
    body = msgspec.json.encode(result)
    # No cache on the way may keep revealed contents.
    tagged = verb.etag and not getattr(request, "reveal", False)
    return Reply(status=route.status, body=body, etag=etag(result, body) if tagged else None)


async def arguments_of(
    http: Request, kind: type[Parameters], in_query: bool, context: ServerContext
) -> dict[str, Any]:
    """Return the unchecked arguments from path, query and body, each from one only."""
    settings = context.settings
    if in_query:
        http.state.body = b""
        given = from_query(kind, http.scope["query_string"])
    else:
        given = await from_body(
            http, settings.server_request_bytes, settings.server_request_seconds
        )
    twice = sorted(given.keys() & http.path_params.keys())
    if twice:
        raise Malformed(f"{twice[0]} is already in the path. Leave it out elsewhere.")
    return {**given, **http.path_params}


MAX_BATCH = 1000


class RememberMany(Parameters, frozen=True, kw_only=True):
    memories: Annotated[
        tuple[Remember, ...],
        Meta(
            min_length=1,
            max_length=MAX_BATCH,
            description="Each as for remember; either all are stored or none.",
        ),
    ]


class DiffRequest(Parameters, frozen=True, kw_only=True):
    id: Id
    older: Annotated[Positive, Meta(description="The revision to start from.")]
    newer: Annotated[Positive, Meta(description="The revision to go to.")]
    reveal: Annotated[
        bool, Meta(description="Show sensitive contents instead of masking them.")
    ] = False


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What changed between two revisions, as a unified diff."""

    id: str
    older: int
    newer: int
    diff: str


def extra_endpoints(context: ServerContext) -> tuple[Endpoint, ...]:
    return (_remember_many(context), _diff(context))


def _remember_many(context: ServerContext) -> Endpoint:
    async def handle(request: Request) -> Response:
        authenticate(request, "write")
        given = await _memories(request, context)
        repeatable = idempotent_request(request, request.state.body)
        if repeatable:
            given = [
                msgspec.structs.replace(one, id=one.id or repeatable.id(number))
                for number, one in enumerate(given)
            ]

        def store(memory: Trivet) -> Reply:
            return Reply(status=201, body=msgspec.json.encode(memory.remember_many(given)))

        def act() -> Reply:
            with context.using(request) as memory:
                return act_once(context, memory, repeatable, lambda: store(memory))

        return (await context.pool.run(act, "write")).response()

    return Endpoint(
        name="remember_many",
        method="POST",
        path="/v1/memories/batch",
        summary="Store several memories in one transaction.",
        needs="write",
        request=RememberMany,
        result=tuple[Remembered, ...],
        status=201,
        once=True,
        handle=handle,
    )


async def _memories(request: Request, context: ServerContext) -> list[Remember]:
    arguments = await arguments_of(request, Parameters, False, context)
    memories = arguments.pop("memories", None)
    if arguments or not isinstance(memories, list) or not 0 < len(memories) <= MAX_BATCH:
        raise InvalidInput(
            f'The body must be {{"memories": [...]}} with 1 to {MAX_BATCH} memories and nothing '
            "else."
        )
    return [_checked(number, memory) for number, memory in enumerate(memories)]


def _checked(number: int, memory: Any) -> Remember:
    if not isinstance(memory, dict):
        raise InvalidInput(f"memories[{number}] must be an object with the fields of remember.")
    try:
        return check(Remember, memory)
    except InvalidInput as error:
        raise InvalidInput(f"memories[{number}]: {error}") from None


def _diff(context: ServerContext) -> Endpoint:
    async def handle(request: Request) -> Response:
        authenticate(request, "read")
        given = check(DiffRequest, await arguments_of(request, DiffRequest, True, context))

        def act() -> Reply:
            with context.using(request) as memory:
                text = memory.diff(given.id, given.older, given.newer, reveal=given.reveal)
            shown = Difference(id=given.id, older=given.older, newer=given.newer, diff=text)
            return Reply(status=200, body=msgspec.json.encode(shown))

        return (await context.pool.run(act)).response()

    return Endpoint(
        name="diff",
        method="GET",
        path="/v1/memories/{id}/diff",
        summary="Show what changed between two revisions of a memory.",
        needs="read",
        request=DiffRequest,
        in_path=("id",),
        in_query=True,
        result=Difference,
        handle=handle,
    )
