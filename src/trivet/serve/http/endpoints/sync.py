"""Endpoints for synced laptops (docs/sync.md), not part of the OpenAPI document."""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from trivet.common.threads import prepared_type
from trivet.errors import InvalidInput
from trivet.serve.http.endpoints.endpoint import (
    JSON,
    NDJSON,
    EndpointRoute,
    Handler,
    ServerContext,
    authenticate,
    read_body,
)
from trivet.serve.http.errors import Malformed
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

WAIT_PATH = "/v1/sync/wait"
# Bounds the memory that a page of long items takes on either side.
MAX_PAGE_BYTES = 16 * 2**20
MAX_ITEMS = 500
MAX_OPS = 500
# Also the polling interval of an idle laptop.
MAX_WAIT_SECONDS = 240.0

T = TypeVar("T")


def sync_routes(context: ServerContext, news: ChangeNotifier) -> list[EndpointRoute]:
    async def hello(request: Request) -> Response:
        caller = authenticate(request, "read")
        sensitive = context.settings.sync_sensitive
        greeting = Hello(
            oldest_protocol=OLDEST_PROTOCOL,
            newest_protocol=NEWEST_PROTOCOL,
            user=caller.user,
            sensitive=sensitive,
            vectors=True,
        )
        return Response(msgspec.json.encode(greeting), media_type=JSON)

    async def wait(request: Request) -> Response:
        caller = authenticate(request, "read")
        try:
            seconds = float(request.query_params.get("seconds", "0"))
        except ValueError:
            raise Malformed("seconds must be a number.") from None
        known = request.query_params.get("known", "")
        latest = await news.after(caller, known, min(max(seconds, 0.0), MAX_WAIT_SECONDS))
        return Response(msgspec.json.encode({"known": latest}), media_type=JSON)

    return [
        EndpointRoute("/v1/sync/hello", {"GET": hello}),
        EndpointRoute("/v1/sync/push", {"POST": _push(context)}),
        EndpointRoute("/v1/sync/pull", {"POST": _pull(context)}),
        EndpointRoute("/v1/sync/vectors", {"POST": _vectors(context)}),
        EndpointRoute("/v1/sync/digests", {"GET": _digests(context)}),
        EndpointRoute(WAIT_PATH, {"GET": wait}),
    ]


def _push(context: ServerContext) -> Handler:
    async def handle(request: Request) -> Response:
        asked = await _read_request(request, context, "write", PushRequest)
        if not 0 < len(asked.ops) <= MAX_OPS:
            raise InvalidInput(f"ops: a push must have 1 to {MAX_OPS} operations.")

        def act() -> bytes:
            from trivet.sync.server import push

            with context.using(request) as memory:
                return msgspec.json.encode(push(memory.engine, asked.place, asked.ops))

        return Response(await context.pool.run(act, "write"), media_type=JSON)

    return handle


def _pull(context: ServerContext) -> Handler:
    async def handle(request: Request) -> Response:
        asked = await _read_request(request, context, "read", PullRequest)

        def act() -> bytes:
            with context.using(request) as memory:
                return _page(memory, asked)

        return Response(await context.pool.run(act), media_type=NDJSON)

    return handle


def _page(memory: Trivet, asked: PullRequest) -> bytes:
    """Encode items and position as lines; retry an oversized page with fewer items."""
    from trivet.sync.server import pull

    limit = min(max(asked.limit, 1), MAX_ITEMS)
    while True:
        answer = pull(memory.engine, asked.place, limit)
        if not isinstance(answer, Page):
            return msgspec.json.encode(answer) + b"\n"
        lines = [msgspec.json.encode(item) for item in answer.items]
        if limit == 1 or sum(map(len, lines)) <= MAX_PAGE_BYTES:
            last = msgspec.json.encode(msgspec.structs.replace(answer, items=()))
            return b"\n".join([*lines, last]) + b"\n"
        limit = max(1, limit // 4)


def _vectors(context: ServerContext) -> Handler:
    async def handle(request: Request) -> Response:
        asked = await _read_request(request, context, "read", VectorsRequest)
        if len(asked.ids) > MAX_ITEMS:
            raise InvalidInput(
                f"ids: ask for the vectors of at most {MAX_ITEMS} memories at a time."
            )

        def act() -> bytes:
            from trivet.sync.vectors import stored_vectors

            with context.using(request) as memory:
                lines, last = stored_vectors(memory.engine, asked)
            return b"".join(msgspec.json.encode(line) + b"\n" for line in (*lines, last))

        return Response(await context.pool.run(act), media_type=NDJSON)

    return handle


def _digests(context: ServerContext) -> Handler:
    async def handle(request: Request) -> Response:
        authenticate(request, "read")

        def act() -> bytes:
            from trivet.sync.server import digests

            with context.using(request) as memory:
                return msgspec.json.encode(
                    digests(memory.engine, request.query_params.getlist("scope"))
                )

        return Response(await context.pool.run(act), media_type=JSON)

    return handle


async def _read_request(request: Request, context: ServerContext, needs: Right, kind: type[T]) -> T:
    authenticate(request, needs)
    settings = context.settings
    body = await read_body(request, settings.server_request_bytes, settings.server_request_seconds)
    protocol = _protocol(body)
    if not OLDEST_PROTOCOL <= protocol <= NEWEST_PROTOCOL:
        newer = "Trivet on the laptop" if protocol < OLDEST_PROTOCOL else "Trivet on the server"
        raise InvalidInput(
            f"This server supports sync protocols {OLDEST_PROTOCOL} to {NEWEST_PROTOCOL}; the "
            "request "
            f"used {protocol}. Nothing was done; upgrade {newer}."
        )
    try:
        return msgspec.json.decode(body, type=prepared_type(kind))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Malformed(
            "The body is not a valid sync message. Does a proxy on the way change it?"
        ) from None


class _Protocol(msgspec.Struct, frozen=True):
    protocol: int = 0


def _protocol(body: bytes) -> int:
    try:
        return msgspec.json.decode(body, type=prepared_type(_Protocol)).protocol
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise Malformed("The body is not JSON.") from None


# Delay until writes from outside this server are noticed.
CHANGE_POLL_SECONDS = 120.0
# Tenants whose position is kept; a forgotten one is read again.
TENANTS_KEPT = 1_000
EVERY_USER = "*"


class FeedPosition(msgspec.Struct, frozen=True):
    """The part of a tenant's feed that was read, and each user's last change in it."""

    change: int
    seq: int
    since: int  # earlier changes count as affecting everyone
    affected_users: Mapping[str, int]

    def of(self, user: str) -> str:
        return str(
            max(
                self.since, self.affected_users.get(user, 0), self.affected_users.get(EVERY_USER, 0)
            )
        )


class _Tenant:
    def __init__(self) -> None:
        self.waiting: dict[asyncio.Event, Caller] = {}
        self.seen: FeedPosition | None = None
        self.looked = 0.0
        self.looking = asyncio.Lock()

    def wake(self, before: FeedPosition | None) -> None:
        for event, caller in self.waiting.items():
            if (
                before is None
                or self.seen is None
                or before.of(caller.user) != self.seen.of(caller.user)
            ):
                event.set()


class ChangeNotifier:
    """One read of the store for all waiting laptops of a tenant."""

    def __init__(self, context: ServerContext, neighbours: WorkerPeers) -> None:
        self._context = context
        self._neighbours = neighbours
        self._tenants: OrderedDict[str, _Tenant] = OrderedDict()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ended = False

    async def after(self, caller: Caller, known: str, seconds: float) -> str:
        """Return the user's position once it differs from `known`, or after `seconds`."""
        tenant, loop, event = (
            self._tenant(caller.tenant),
            asyncio.get_running_loop(),
            asyncio.Event(),
        )
        until = loop.time() + seconds
        tenant.waiting[event] = caller
        try:
            latest = await self._refresh(tenant, caller)
            while not self._ended and latest == known and (left := until - loop.time()) > 0:
                try:
                    await asyncio.wait_for(event.wait(), min(left, CHANGE_POLL_SECONDS))
                except TimeoutError:
                    if (
                        left > CHANGE_POLL_SECONDS
                        and loop.time() - tenant.looked >= CHANGE_POLL_SECONDS / 2
                    ):
                        await self._refresh(tenant, caller)
                event.clear()
                latest = tenant.seen.of(caller.user) if tenant.seen else latest
            return latest
        finally:
            del tenant.waiting[event]

    def end(self) -> None:
        self._ended = True
        for tenant in self._tenants.values():
            for event in tenant.waiting:
                event.set()

    def written(self, caller: Caller) -> None:
        self._neighbours.tell(caller.tenant)
        self.heard(caller.tenant)

    def heard(self, name: str) -> None:
        for tenant in self._tenants.values() if name == ANY_TENANT else (self._tenants.get(name),):
            if tenant is not None and tenant.waiting:
                task = asyncio.ensure_future(
                    self._refresh(tenant, next(iter(tenant.waiting.values())))
                )
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    def _tenant(self, name: str) -> _Tenant:
        tenant = self._tenants.setdefault(name, _Tenant())
        self._tenants.move_to_end(name)
        for other in list(self._tenants)[: max(0, len(self._tenants) - TENANTS_KEPT)]:
            if not self._tenants[other].waiting:
                del self._tenants[other]
        return tenant

    async def _refresh(self, tenant: _Tenant, caller: Caller) -> str:
        async with tenant.looking:
            before = tenant.seen
            tenant.seen = await self._context.pool.run(lambda: self._read(caller, before), "door")
            tenant.looked = asyncio.get_running_loop().time()
            if tenant.seen != before:
                tenant.wake(before)
            return tenant.seen.of(caller.user)

    def _read(self, caller: Caller, before: FeedPosition | None) -> FeedPosition:
        from trivet.sync.server import numbered_state

        with self._context.tenants.using(caller) as memory:
            feed = memory.engine.store.feed
            change = feed.last_change()
            if before is not None and change == before.change:
                return before
            state = numbered_state(memory.engine)
            if before is None or state.unfinished or state.seq < before.seq:
                return FeedPosition(change, state.seq, state.seq, {})
            with feed.snapshot() as connection:
                affected_users = feed.affected_users(connection, before.seq)
            if affected_users is None:
                return FeedPosition(change, state.seq, state.seq, {})
            return FeedPosition(
                change, state.seq, before.since, {**before.affected_users, **affected_users}
            )


# Sent after names were lost: any tenant may have been written to.
ANY_TENANT = "*"
# Writes up to PIPE_BUF are atomic; tenant names are far shorter.
PIPE_READ_BYTES = 4096
RETRY_SECONDS = 0.1


class WorkerPeers:
    """Pipes to the other workers, for the event loop's thread only."""

    def __init__(self, own: Connection | None = None, others: Sequence[Connection] = ()) -> None:
        self._own = own
        self._others = tuple(others)
        self._full_pipes: set[Connection] = set()
        self._partial_line = b""
        for one in (*([own] if own else ()), *others):
            os.set_blocking(one.fileno(), False)

    @contextmanager
    def listening(self, heard: Callable[[str], None]) -> Iterator[None]:
        if self._own is None:
            yield
            return
        loop, own = asyncio.get_running_loop(), self._own.fileno()
        loop.add_reader(own, lambda: self._read(own, heard))
        try:
            yield
        finally:
            loop.remove_reader(own)

    def tell(self, tenant: str) -> None:
        for one in self._others:
            if one not in self._full_pipes:
                self._send(one, tenant)

    def _send(self, one: Connection, tenant: str) -> None:
        """Write without waiting; a worker with a full pipe gets ANY_TENANT later."""
        try:
            os.write(one.fileno(), f"{tenant}\n".encode())
            self._full_pipes.discard(one)
        except BlockingIOError:
            self._full_pipes.add(one)
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self._send, one, ANY_TENANT)

    def _read(self, own: int, heard: Callable[[str], None]) -> None:
        try:
            *names, self._partial_line = (self._partial_line + os.read(own, PIPE_READ_BYTES)).split(
                b"\n"
            )
        except BlockingIOError:  # another callback has read it already
            return
        for name in dict.fromkeys(names):
            heard(name.decode())
