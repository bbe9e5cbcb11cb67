"""Endpoints beside the contract's verbs: many memories at once, the difference between two revisions."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trivet.contract import Parameters, Remember, check
from trivet.contract.fields import Id, Positive
from trivet.errors import InvalidInput
from trivet.serve.http.endpoint import Endpoint, Reply, ServerContext, caller_of
from trivet.serve.http.idempotency import act_once, idempotent_request
from trivet.serve.http.verb_endpoints import arguments_of
from trivet.trivet import Trivet
from trivet.types import Remembered

MOST_AT_ONCE = 1000


class RememberMany(Parameters, frozen=True, kw_only=True):
    memories: Annotated[
        tuple[Remember, ...],
        Meta(min_length=1, max_length=MOST_AT_ONCE, description="Each as for remember; all are stored, or none."),
    ]


class DiffRequest(Parameters, frozen=True, kw_only=True):
    id: Id
    older: Annotated[Positive, Meta(description="The revision to start from.")]
    newer: Annotated[Positive, Meta(description="The revision to go to.")]
    reveal: Annotated[bool, Meta(description="Show sensitive contents instead of masking them.")] = False


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
        caller_of(request, "write")
        given = await _memories(request, context)
        repeatable = idempotent_request(request, request.state.body)
        if repeatable:
            given = [
                msgspec.structs.replace(one, id=one.id or repeatable.id(number)) for number, one in enumerate(given)
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
    """Each is checked by itself, so that an error can say which one it is about."""
    arguments = await arguments_of(request, Parameters, False, context)
    memories = arguments.pop("memories", None)
    if arguments or not isinstance(memories, list) or not 0 < len(memories) <= MOST_AT_ONCE:
        raise InvalidInput(f'The body is {{"memories": [...]}} with 1 to {MOST_AT_ONCE} memories, and nothing else.')
    return [_checked(number, memory) for number, memory in enumerate(memories)]


def _checked(number: int, memory: Any) -> Remember:
    if not isinstance(memory, dict):
        raise InvalidInput(f"memories[{number}]: an object with the fields of remember is expected.")
    try:
        return check(Remember, memory)
    except InvalidInput as error:
        raise InvalidInput(f"memories[{number}]: {error}") from None


def _diff(context: ServerContext) -> Endpoint:
    async def handle(request: Request) -> Response:
        caller_of(request, "read")
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
