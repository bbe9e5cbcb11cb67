"""What every endpoint works with, and what an endpoint is.

From the bytes of a request to the arguments of an operation. What cannot be read says so, and why.

A memory's ETag: its revision, which changes by every edit, and a digest of what is shown of it.

Idempotency-Key: a client that lost the answer to a write sends it again; it acts once and is answered alike.

What is kept lies in the tenant's own store, so it outlives a restart and holds for all processes on one database. It is
sealed with a key made from the API key and the Idempotency-Key, neither of which is stored: an answer may quote
memories, and must not outlive them in the clear when they are purged.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Scope

from trivet import contract
from trivet.contract import Need
from trivet.contract.verb import Method
from trivet.errors import InvalidInput, StoreError
from trivet.memory.engine import demand
from trivet.memory.perform import IdempotencyRecord
from trivet.serve.http.errors import (
    BodyTimedOut,
    Malformed,
    OutOfDate,
    StillRunning,
    TooLarge,
    WrongMediaType,
)
from trivet.serve.http.limits import ThreadPool
from trivet.serve.http.tenants import Tenants
from trivet.settings import Settings
from trivet.trivet import Trivet
from trivet.types import Caller, Memory, Right

if TYPE_CHECKING:
    from trivet.store.records import StoredAnswer
    from trivet.store.relational.tables.ledgers import Idempotency


Handler = Callable[[Request], Awaitable[Response]]
JSON = "application/json"
NDJSON = "application/x-ndjson"
# Nearly every request acts within this time after its key was looked at; to look again would be a query for each.
KEY_RECHECK_SECONDS = 1.0


class ServerContext(msgspec.Struct, frozen=True):
    """What every endpoint works with."""

    tenants: Tenants
    pool: ThreadPool
    settings: Settings

    @contextmanager
    def using(self, http: Request) -> Iterator[Trivet]:
        """The store for the caller of a request. One that came slowly or waited long has its key looked at again."""
        caller: Caller = http.state.caller
        if time.monotonic() - http.state.known_at > KEY_RECHECK_SECONDS:
            self.tenants.recheck_caller(caller)
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


def authenticate(http: Request, needs: Need) -> Caller:
    """Who asks, if they may. It is checked before the body is read; performing the verb checks it again."""
    caller = http.state.caller
    assert isinstance(caller, Caller)
    demand(caller, needs)
    return caller


class EndpointRoute(Route):
    def __init__(self, path: str, handlers: Mapping[str, Handler]) -> None:
        async def handle(request: Request) -> Response:
            return await handlers["GET" if request.method == "HEAD" else request.method](request)

        super().__init__(path, handle, methods=list(handlers))

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        return match, child if match is Match.NONE else {**child, "route": self}


def endpoint_routes(endpoints: Sequence[Endpoint]) -> list[EndpointRoute]:
    handlers: dict[str, dict[str, Handler]] = {}
    for endpoint in endpoints:
        handlers.setdefault(endpoint.path, {})[endpoint.method] = endpoint.handle
    return [EndpointRoute(path, methods) for path, methods in handlers.items()]


_WHOLE = re.compile(r"-?\d{1,18}")
_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,30})?([eE][+-]?\d{1,3})?")
_FLAGS = {"true": True, "false": False}
# More than any route has, with lists of the longest kind.
MAX_PARAMETERS = 500


class Shape(msgspec.Struct, frozen=True):
    """What a field holds, as far as a query string must know."""

    kind: str
    repeated: bool


@cache
def shapes_of(request: Any) -> Mapping[str, Shape]:
    properties = contract.json_schema(request).get("properties", {})
    return {name: _shape(schema) for name, schema in properties.items()}


def from_query(request: Any, query: bytes) -> dict[str, Any]:
    """What the declared types make of the texts; one that fits none stays a text, for the contract to refuse."""
    shapes = shapes_of(request)
    arguments: dict[str, Any] = {}
    for name, text in _pairs(query):
        shape = shapes.get(name, Shape("string", False))
        value = _value(shape.kind, text)
        if shape.repeated:
            arguments.setdefault(name, []).append(value)
        elif name in arguments:
            raise Malformed(f"{name}: it is given more than once, and takes one value.")
        else:
            arguments[name] = value
    return arguments


async def from_body(request: Request, most_bytes: int, seconds: float) -> dict[str, Any]:
    """The JSON object in the body; nothing at all is an empty one."""
    body = request.state.body = await read_body(request, most_bytes, seconds)
    if not body:
        return {}
    _check_media_type(request, "application/json")
    value = decoded(body)
    if not isinstance(value, dict):
        raise Malformed("The body is JSON, but not an object. Put the fields between { and }.")
    return value


def decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise Malformed(f"The body is not JSON: {error}.") from None
    except UnicodeError:
        raise Malformed("The body is not UTF-8. Encode it so.") from None
    except RecursionError:
        raise Malformed(
            "The body is nested too deeply. No field of this server holds more than a list."
        ) from None


async def read_body(request: Request, most_bytes: int, seconds: float) -> bytes:
    """All of it, unless it is too large, which is noticed before it is all there."""
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > most_bytes:
        raise _too_large(most_bytes)
    parts = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                parts += part
                if len(parts) > most_bytes:
                    raise _too_large(most_bytes)
    except TimeoutError:
        raise BodyTimedOut(
            f"The body was not here after {seconds:g} s. Nothing was done; send it faster."
        ) from None
    return bytes(parts)


def check_ndjson(request: Request) -> None:
    _check_media_type(
        request, "application/x-ndjson", "application/jsonl", "application/x-jsonlines"
    )


def _check_media_type(request: Request, *accepted: str) -> None:
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise WrongMediaType(
            "The body is compressed, and this server reads none so. Send it as it is."
        )
    given, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.replace(" ", "").replace('"', "").lower()
    if given.strip().lower() not in accepted or charset not in (
        "",
        "charset=utf-8",
        "charset=utf8",
    ):
        raise WrongMediaType(
            f"The body must be {accepted[0]} in UTF-8. Say so in the header Content-Type."
        )


def _too_large(most_bytes: int) -> TooLarge:
    return TooLarge(
        f"The body has more than {most_bytes:,} bytes, and this server reads no more. Nothing was done; "
        "split it, or import lines by POST /v1/import."
    )


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_PARAMETERS,
        )
    except UnicodeError:
        raise Malformed("The query is not UTF-8 in percent encoding. Encode it so.") from None
    except ValueError:
        raise Malformed(
            f"The query has more than {MAX_PARAMETERS} parameters. Leave some out."
        ) from None


def _value(kind: str, text: str) -> Any:
    if kind == "boolean":
        return _FLAGS.get(text, text)
    if kind == "integer" and _WHOLE.fullmatch(text):
        return int(text)
    if kind == "number" and _NUMBER.fullmatch(text):
        return float(text)
    return text


def _shape(schema: Mapping[str, Any]) -> Shape:
    options = [option for option in schema.get("anyOf", ()) if option.get("type") != "null"]
    inner = options[0] if options else schema
    repeated = inner.get("type") == "array"
    item = inner.get("items", {}) if repeated else inner
    return Shape(item.get("type", "string"), repeated)


_TAG = re.compile(r'(?:W/)?"(\d{1,10})(?:-[0-9a-f]*)?"')
DIGEST_BYTES = 6


def etag(memory: Memory, body: bytes) -> str:
    """The digest tells apart what has one revision: masked and revealed, or superseded by a link."""
    return f'"{memory.revision}-{hashlib.blake2b(body, digest_size=DIGEST_BYTES).hexdigest()}"'


def is_known(request: Request, tag: str) -> bool:
    """Whether the caller has this already, so that 304 is all it needs."""
    given = request.headers.get("if-none-match", "")
    return given == "*" or tag in [one.strip().removeprefix("W/") for one in given.split(",")]


def expected_revisions(request: Request) -> frozenset[int] | None:
    """Those of If-Match; None where any will do."""
    given = request.headers.get("if-match")
    if given is None or given.strip() == "*":
        return None
    found = [_TAG.fullmatch(one.strip()) for one in given.split(",")]
    if not all(found):
        raise InvalidInput(
            'If-Match: give the ETag of the memory as it came, such as "3-0f6c1a2b9d10".'
        )
    return frozenset(int(one[1]) for one in found if one)


def check_unchanged(memory: Trivet, id: str, expected: frozenset[int] | None) -> int | None:
    """The revision that was expected and is there, or nothing where none was expected."""
    if expected is None:
        return None
    current = memory.get(id).revision
    if current not in expected:
        raise OutOfDate(
            f"The memory is at revision {current} by now. Nothing was done; read it again."
        )
    return current


logger = logging.getLogger("trivet.serve.http")

IDEMPOTENCY_HEADER = "idempotency-key"
IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,200}")
# After so many times the time that a request may take, the process that worked on it is taken for dead.
LEASE_FACTOR = 2


class IdempotentRequest(IdempotencyRecord):
    """A request that must act once."""

    def sealed(self, reply: Reply) -> bytes:
        return self.seal(msgspec.msgpack.encode(reply))

    def opened(self, answer: bytes) -> Reply:
        return msgspec.msgpack.decode(self.open(answer), type=Reply)


def idempotent_request(request: Request, body: bytes) -> IdempotentRequest | None:
    """None where the caller did not ask for it."""
    given = request.headers.getlist(IDEMPOTENCY_HEADER)
    if not given:
        return None
    if len(given) > 1 or not IDEMPOTENCY_KEY.fullmatch(given[0]):
        raise Malformed(
            "Idempotency-Key: one text of 1 to 200 printable ASCII characters without spaces is expected."
        )
    target = request.scope["raw_path"] + b"?" + request.scope["query_string"]
    condition = request.headers.get("if-match", "").encode()
    asked = b"\n".join((request.method.encode(), target, condition, hashlib.sha256(body).digest()))
    return IdempotentRequest(request.state.secret, given[0], asked)


def act_once(
    context: ServerContext,
    memory: Trivet,
    repeatable: IdempotentRequest | None,
    act: Callable[[], Reply],
    atomic: bool = False,
) -> Reply:
    """`atomic`: the answer is kept in the transaction of the act, so a server that dies leaves both or neither."""
    if repeatable is None:
        return act()
    once = memory.engine.store.idempotency
    lease = LEASE_FACTOR * context.settings.server_request_seconds
    if atomic:
        kept = once.act(
            repeatable.name, repeatable.request, lambda: repeatable.sealed(act()), lease
        )
        memory.engine.worker.wake()  # the act itself did before its work could be seen
        return _replayed(repeatable, kept)
    begun = once.begin(repeatable.name, repeatable.request, lease)
    return _act(once, repeatable, act) if begun is None else _replayed(repeatable, begun)


def _replayed(repeatable: IdempotentRequest, kept: StoredAnswer) -> Reply:
    if not hmac.compare_digest(kept.request, repeatable.request):
        raise InvalidInput(
            "Idempotency-Key: it came with another request before. Nothing was done; make a new one."
        )
    if kept.answer is None:
        raise StillRunning(
            "The same request is being worked on. Ask again in a moment with the same Idempotency-Key."
        )
    return msgspec.structs.replace(repeatable.opened(kept.answer), replayed=not kept.acted)


def _act(once: Idempotency, repeatable: IdempotentRequest, act: Callable[[], Reply]) -> Reply:
    try:
        reply = act()
    except BaseException:
        once.give_up(repeatable.name)
        raise
    try:
        once.finish(repeatable.name, repeatable.sealed(reply))
    except StoreError as error:  # it is done all the same, and the caller should hear so
        logger.warning("An answer could not be kept for a repeated request: %s", error)
    return reply
