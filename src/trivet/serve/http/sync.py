"""The addresses that laptops speak to (docs/sync.md). They are Trivet's own, and no part of the OpenAPI document."""

from __future__ import annotations

from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trivet.decoding import known_type
from trivet.errors import InvalidInput
from trivet.serve.http.endpoint import JSON, NDJSON, Address, Handler, ServerContext, caller_of
from trivet.serve.http.errors import Malformed
from trivet.serve.http.news import News
from trivet.serve.http.parse_request import read_body
from trivet.sync.messages import (
    NEWEST_PROTOCOL,
    OLDEST_PROTOCOL,
    Hello,
    Page,
    PullRequest,
    PushRequest,
    VectorsRequest,
)
from trivet.trivet import Trivet
from trivet.types import Right

WAIT = "/v1/sync/wait"
# A page of very long memories is cut, so that neither side holds more than some of it.
LONGEST_PAGE_BYTES = 16 * 2**20
MOST_ITEMS = 500
MOST_OPS = 500
# How long a laptop may wait for news with one request. An idle one asks so often and no more.
LONGEST_WAIT_SECONDS = 240.0

T = TypeVar("T")


def sync_routes(context: ServerContext, news: News) -> list[Address]:
    async def hello(request: Request) -> Response:
        caller = caller_of(request, "read")
        sensitive = context.settings.sync_sensitive
        told = Hello(
            oldest_protocol=OLDEST_PROTOCOL,
            newest_protocol=NEWEST_PROTOCOL,
            user=caller.user,
            sensitive=sensitive,
            vectors=True,
        )
        return Response(msgspec.json.encode(told), media_type=JSON)

    async def wait(request: Request) -> Response:
        caller = caller_of(request, "read")
        try:
            seconds = float(request.query_params.get("seconds", "0"))
        except ValueError:
            raise Malformed("seconds: it is not a number.") from None
        known = request.query_params.get("known", "")
        latest = await news.after(caller, known, min(max(seconds, 0.0), LONGEST_WAIT_SECONDS))
        return Response(msgspec.json.encode({"known": latest}), media_type=JSON)

    return [
        Address("/v1/sync/hello", {"GET": hello}),
        Address("/v1/sync/push", {"POST": _push(context)}),
        Address("/v1/sync/pull", {"POST": _pull(context)}),
        Address("/v1/sync/vectors", {"POST": _vectors(context)}),
        Address("/v1/sync/digests", {"GET": _digests(context)}),
        Address(WAIT, {"GET": wait}),
    ]


def _push(context: ServerContext) -> Handler:
    async def handle(request: Request) -> Response:
        asked = await _asked(request, context, "write", PushRequest)
        if not 0 < len(asked.ops) <= MOST_OPS:
            raise InvalidInput(f"ops: a push brings 1 to {MOST_OPS} operations.")

        def act() -> bytes:
            from trivet.sync.server import push

            with context.using(request) as memory:
                return msgspec.json.encode(push(memory.engine, asked.place, asked.ops))

        return Response(await context.pool.run(act, "write"), media_type=JSON)

    return handle


def _pull(context: ServerContext) -> Handler:
    async def handle(request: Request) -> Response:
        asked = await _asked(request, context, "read", PullRequest)

        def act() -> bytes:
            with context.using(request) as memory:
                return _page(memory, asked)

        return Response(await context.pool.run(act), media_type=NDJSON)

    return handle


def _page(memory: Trivet, asked: PullRequest) -> bytes:
    """An item a line, then a line with the place after them. A page that is too large is asked for in smaller ones."""
    from trivet.sync.server import pull

    limit = min(max(asked.limit, 1), MOST_ITEMS)
    while True:
        answer = pull(memory.engine, asked.place, limit)
        if not isinstance(answer, Page):
            return msgspec.json.encode(answer) + b"\n"
        lines = [msgspec.json.encode(item) for item in answer.items]
        if limit == 1 or sum(map(len, lines)) <= LONGEST_PAGE_BYTES:
            last = msgspec.json.encode(msgspec.structs.replace(answer, items=()))
            return b"\n".join([*lines, last]) + b"\n"
        limit = max(1, limit // 4)


def _vectors(context: ServerContext) -> Handler:
    async def handle(request: Request) -> Response:
        asked = await _asked(request, context, "read", VectorsRequest)
        if len(asked.ids) > MOST_ITEMS:
            raise InvalidInput(f"ids: the vectors of at most {MOST_ITEMS} memories are told at a time.")

        def act() -> bytes:
            from trivet.sync.vectors import told_vectors

            with context.using(request) as memory:
                told, last = told_vectors(memory.engine, asked)
            return b"".join(msgspec.json.encode(line) + b"\n" for line in (*told, last))

        return Response(await context.pool.run(act), media_type=NDJSON)

    return handle


def _digests(context: ServerContext) -> Handler:
    async def handle(request: Request) -> Response:
        caller_of(request, "read")

        def act() -> bytes:
            from trivet.sync.server import digests

            with context.using(request) as memory:
                return msgspec.json.encode(digests(memory.engine, request.query_params.getlist("scope")))

        return Response(await context.pool.run(act), media_type=JSON)

    return handle


async def _asked(request: Request, context: ServerContext, needs: Right, kind: type[T]) -> T:
    caller_of(request, needs)
    settings = context.settings
    body = await read_body(request, settings.server_request_bytes, settings.server_request_seconds)
    protocol = _protocol(body)
    if not OLDEST_PROTOCOL <= protocol <= NEWEST_PROTOCOL:
        newer = "the laptop's Trivet" if protocol < OLDEST_PROTOCOL else "the server's Trivet"
        raise InvalidInput(
            f"This server speaks the protocols {OLDEST_PROTOCOL} to {NEWEST_PROTOCOL} of sync, and was asked in "
            f"{protocol}. Nothing was done; upgrade {newer}."
        )
    try:
        return msgspec.json.decode(body, type=known_type(kind))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Malformed("The body is not what sync sends. Is there a proxy in between that changes it?") from None


class _Protocol(msgspec.Struct, frozen=True):
    protocol: int = 0


def _protocol(body: bytes) -> int:
    try:
        return msgspec.json.decode(body, type=known_type(_Protocol)).protocol
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Malformed("The body is not JSON.") from None
