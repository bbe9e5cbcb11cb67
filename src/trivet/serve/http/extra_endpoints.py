"""Endpoints beside the contract's verbs: many memories at once, the difference between two revisions."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta
from starlette.requests import Request
from starlette.responses import Response

from trivet import contract
from trivet.errors import InvalidInput
from trivet.serve.http.endpoint import Desk, Endpoint, Reply, caller_of
from trivet.serve.http.idempotency import act_once, errand_of
from trivet.serve.http.verb_endpoints import arguments_of
from trivet.trivet import Trivet
from trivet.types import Remembered

MOST_AT_ONCE = 1000


class RememberMany(contract.Request, frozen=True, kw_only=True):
    memories: Annotated[
        tuple[contract.Remember, ...],
        Meta(min_length=1, max_length=MOST_AT_ONCE, description="Each as for remember; all are stored, or none."),
    ]


class DiffRequest(contract.Request, frozen=True, kw_only=True):
    id: contract.Id
    older: Annotated[contract.Positive, Meta(description="The revision to start from.")]
    newer: Annotated[contract.Positive, Meta(description="The revision to go to.")]
    reveal: Annotated[bool, Meta(description="Show sensitive contents instead of masking them.")] = False


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """What changed between two revisions, as a unified diff."""

    id: str
    older: int
    newer: int
    diff: str


def extra_endpoints(desk: Desk) -> tuple[Endpoint, ...]:
    return (_remember_many(desk), _diff(desk))


def _remember_many(desk: Desk) -> Endpoint:
    async def handle(request: Request) -> Response:
        caller = caller_of(request, "write")
        given = await _memories(request, desk)
        errand = errand_of(request, request.state.body)
        if errand:
            given = [{**one, "id": one.get("id") or errand.id(number)} for number, one in enumerate(given)]

        def store(memory: Trivet) -> Reply:
            return Reply(status=201, body=msgspec.json.encode(memory.remember_many(given)))

        def act() -> Reply:
            memory = desk.house.trivet(caller)
            return act_once(desk, memory, errand, lambda: store(memory))

        return (await desk.calls.run(act)).response()

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


async def _memories(request: Request, desk: Desk) -> list[dict[str, Any]]:
    """Each is checked by itself, so that an error can say which one it is about."""
    arguments = await arguments_of(request, contract.Request, False, desk, checked=False)
    memories = arguments.pop("memories", None)
    if arguments or not isinstance(memories, list) or not 0 < len(memories) <= MOST_AT_ONCE:
        raise InvalidInput(f'The body is {{"memories": [...]}} with 1 to {MOST_AT_ONCE} memories, and nothing else.')
    for number, memory in enumerate(memories):
        if not isinstance(memory, dict):
            raise InvalidInput(f"memories[{number}]: an object with the fields of remember is expected.")
        try:
            contract.check(contract.Remember, memory)
        except InvalidInput as error:
            raise InvalidInput(f"memories[{number}]: {error}") from None
    return memories


def _diff(desk: Desk) -> Endpoint:
    async def handle(request: Request) -> Response:
        caller = caller_of(request, "read")
        given = await arguments_of(request, DiffRequest, True, desk)

        def act() -> Reply:
            text = desk.house.trivet(caller).diff(**given)
            shown = Difference(id=given["id"], older=given["older"], newer=given["newer"], diff=text)
            return Reply(status=200, body=msgspec.json.encode(shown))

        return (await desk.calls.run(act)).response()

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
