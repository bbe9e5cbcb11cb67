"""The addresses that laptops speak to (docs/sync.md). They are Trivet's own, and no part of the OpenAPI document."""

from __future__ import annotations

import asyncio
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trivet.decoding import known_type
from trivet.errors import InvalidInput
from trivet.serve.http.endpoint import JSON, NDJSON, Address, Handler, ServerContext, caller_of
from trivet.serve.http.errors import Malformed
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
from trivet.types import Caller, Right

WAIT = "/v1/sync/wait"
# A page of very long memories is cut, so that neither side holds more than some of it.
LONGEST_PAGE_BYTES = 16 * 2**20
MOST_ITEMS = 500
MOST_OPS = 500
# How long a laptop may wait for news with one request. An idle one asks so often and no more.
LONGEST_WAIT_SECONDS = 240.0
# What other processes write into the same store is noticed so late; what comes through this server, at once.
LOOK_SECONDS = 90.0

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


class News:
    """Lets laptops wait until their tenant changes. One look at the store serves all that wait."""

    def __init__(self, context: ServerContext) -> None:
        self._context = context
        self._waiting: dict[str, set[asyncio.Event]] = {}
        self._latest: dict[str, str] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ended = False

    async def after(self, caller: Caller, known: str, seconds: float) -> str:
        """How far the tenant's record of changes is, as soon as that is another place than `known`."""
        tenant = caller.tenant
        event = asyncio.Event()
        waiting = self._waiting.setdefault(tenant, set())
        waiting.add(event)
        try:
            latest = self._latest.get(tenant) or await self._look(caller)
            loop = asyncio.get_running_loop()
            until = loop.time() + seconds
            while not self._ended and latest == known and (left := until - loop.time()) > 0:
                try:
                    await asyncio.wait_for(event.wait(), min(left, LOOK_SECONDS))
                    latest = self._latest.get(tenant, latest)
                except TimeoutError:
                    if left > LOOK_SECONDS:
                        latest = await self._look(caller)
                event.clear()
            return latest
        finally:
            waiting.discard(event)
            if not waiting:  # nobody keeps it fresh any longer
                self._waiting.pop(tenant, None)
                self._latest.pop(tenant, None)

    def end(self) -> None:
        """The server is about to end: those who wait are answered."""
        self._ended = True
        for events in self._waiting.values():
            for event in events:
                event.set()

    def written(self, caller: Caller) -> None:
        """After a request that may have written."""
        if caller.tenant in self._waiting:
            task = asyncio.ensure_future(self._look(caller))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _look(self, caller: Caller) -> str:
        latest = await self._context.pool.run(lambda: self._read(caller), "door")
        if self._latest.get(caller.tenant) != latest and caller.tenant in self._waiting:
            self._latest[caller.tenant] = latest
            for event in self._waiting[caller.tenant]:
                event.set()
        return latest

    def _read(self, caller: Caller) -> str:
        with self._context.tenants.using(caller) as memory:
            return str(memory.engine.store.feed.last_change())
