"""Context, routes, request parsing, ETags and idempotency keys of all endpoints.

Kept answers may quote memories, so a key derived from the API key and the Idempotency-Key seals
them.
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
# Nearly all requests act within this time of their key check; a recheck costs a query.
KEY_RECHECK_SECONDS = 1.0


class ServerContext(msgspec.Struct, frozen=True):
    tenants: Tenants
    pool: ThreadPool
    settings: Settings

    @contextmanager
    def using(self, http: Request) -> Iterator[Trivet]:
        """Yield the caller's store; recheck the key first if the request was slow."""
        caller: Caller = http.state.caller
        if time.monotonic() - http.state.known_at > KEY_RECHECK_SECONDS:
            self.tenants.recheck_caller(caller)
        with self.tenants.using(caller) as memory:
            yield memory


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
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
    """An answer that can be stored and replayed."""

    status: int
    body: bytes = b""
    etag: str | None = None
    replayed: bool = False

    def response(self) -> Response:
        headers = {"ETag": self.etag, "Cache-Control": "private, no-cache"} if self.etag else {}
        headers |= {"Idempotent-Replayed": "true"} if self.replayed else {}
        return Response(self.body, self.status, headers, JSON if self.body else None)


def authenticate(http: Request, needs: Need) -> Caller:
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
# More than any route accepts.
MAX_PARAMETERS = 500


class Shape(msgspec.Struct, frozen=True):
    kind: str
    repeated: bool


@cache
def shapes_of(request: Any) -> Mapping[str, Shape]:
    properties = contract.json_schema(request).get("properties", {})
    return {name: _shape(schema) for name, schema in properties.items()}


def from_query(request: Any, query: bytes) -> dict[str, Any]:
    """Parse query texts by their declared types; the contract refuses others."""
    shapes = shapes_of(request)
    arguments: dict[str, Any] = {}
    for name, text in _pairs(query):
        shape = shapes.get(name, Shape("string", False))
        value = _value(shape.kind, text)
        if shape.repeated:
            arguments.setdefault(name, []).append(value)
        elif name in arguments:
            raise Malformed(f"{name} is given more than once but takes one value.")
        else:
            arguments[name] = value
    return arguments


async def from_body(request: Request, most_bytes: int, seconds: float) -> dict[str, Any]:
    body = request.state.body = await read_body(request, most_bytes, seconds)
    if not body:
        return {}
    _check_media_type(request, "application/json")
    value = decoded(body)
    if not isinstance(value, dict):
        raise Malformed("The body is JSON but not an object. Put the fields between { and }.")
    return value


def decoded(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise Malformed(f"The body is not JSON: {error}.") from None
    except UnicodeError:
        raise Malformed("The body is not UTF-8. Encode it as UTF-8.") from None
    except RecursionError:
        raise Malformed("The body is nested too deeply. No field holds more than a list.") from None


async def read_body(request: Request, most_bytes: int, seconds: float) -> bytes:
    """Return the body; refuse one that is too large before it has fully arrived."""
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
            f"The body had not arrived after {seconds:g} s. Nothing was done; send it faster."
        ) from None
    return bytes(parts)


def check_ndjson(request: Request) -> None:
    _check_media_type(
        request, "application/x-ndjson", "application/jsonl", "application/x-jsonlines"
    )


def _check_media_type(request: Request, *accepted: str) -> None:
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise WrongMediaType("The body is compressed. Send it uncompressed.")
    given, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.replace(" ", "").replace('"', "").lower()
    if given.strip().lower() not in accepted or charset not in (
        "",
        "charset=utf-8",
        "charset=utf8",
    ):
        raise WrongMediaType(
            f"The body must be {accepted[0]} in UTF-8. Set the header Content-Type to that."
        )


def _too_large(most_bytes: int) -> TooLarge:
    return TooLarge(
        f"The body is over the limit of {most_bytes:,} bytes. Nothing was done; "
        "split it, or import lines with POST /v1/import."
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
        raise Malformed("The query is not UTF-8 in percent encoding. Encode it that way.") from None
    except ValueError:
        raise Malformed(
            f"The query has more than {MAX_PARAMETERS} parameters. Remove some."
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
    """Return revision and digest; the digest differs for masked and revealed answers."""
    return f'"{memory.revision}-{hashlib.blake2b(body, digest_size=DIGEST_BYTES).hexdigest()}"'


def is_known(request: Request, tag: str) -> bool:
    given = request.headers.get("if-none-match", "")
    return given == "*" or tag in [one.strip().removeprefix("W/") for one in given.split(",")]


def expected_revisions(request: Request) -> frozenset[int] | None:
    given = request.headers.get("if-match")
    if given is None or given.strip() == "*":
        return None
    found = [_TAG.fullmatch(one.strip()) for one in given.split(",")]
    if not all(found):
        raise InvalidInput(
            'If-Match must be the ETag of the memory exactly as received, such as "3-0f6c1a2b9d10".'
        )
    return frozenset(int(one[1]) for one in found if one)


def check_unchanged(memory: Trivet, id: str, expected: frozenset[int] | None) -> int | None:
    """Return the current revision if one is expected; raise if it differs."""
    if expected is None:
        return None
    current = memory.get(id).revision
    if current not in expected:
        raise OutOfDate(
            f"The memory is now at revision {current}. Nothing was done; read it again."
        )
    return current


logger = logging.getLogger("trivet.serve.http")

IDEMPOTENCY_HEADER = "idempotency-key"
IDEMPOTENCY_KEY = re.compile(r"[!-~]{1,200}")
# After this many request timeouts, the process working on a request counts as dead.
LEASE_FACTOR = 2


class IdempotentRequest(IdempotencyRecord):
    def sealed(self, reply: Reply) -> bytes:
        return self.seal(msgspec.msgpack.encode(reply))

    def opened(self, answer: bytes) -> Reply:
        return msgspec.msgpack.decode(self.open(answer), type=Reply)


def idempotent_request(request: Request, body: bytes) -> IdempotentRequest | None:
    given = request.headers.getlist(IDEMPOTENCY_HEADER)
    if not given:
        return None
    if len(given) > 1 or not IDEMPOTENCY_KEY.fullmatch(given[0]):
        raise Malformed(
            "Idempotency-Key must be one text of 1 to 200 printable ASCII characters without "
            "spaces."
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
    """Perform `act`, or return the kept answer to a repeated request.

    With `atomic`, act and answer share one transaction.
    """
    if repeatable is None:
        return act()
    once = memory.engine.store.idempotency
    lease = LEASE_FACTOR * context.settings.server_request_seconds
    if atomic:
        kept = once.act(
            repeatable.name, repeatable.request, lambda: repeatable.sealed(act()), lease
        )
        memory.engine.worker.wake()  # the act woke it before its work was visible
        return _replayed(repeatable, kept)
    begun = once.begin(repeatable.name, repeatable.request, lease)
    return _act(once, repeatable, act) if begun is None else _replayed(repeatable, begun)


def _replayed(repeatable: IdempotentRequest, kept: StoredAnswer) -> Reply:
    if not hmac.compare_digest(kept.request, repeatable.request):
        raise InvalidInput(
            "This Idempotency-Key was used with another request. Nothing was done; make a new one."
        )
    if kept.answer is None:
        raise StillRunning(
            "The same request is still running. Repeat it in a moment with the same "
            "Idempotency-Key."
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
    except StoreError as error:  # the act succeeded, and the caller should know
        logger.warning("The answer to an idempotent request could not be stored: %s", error)
    return reply
