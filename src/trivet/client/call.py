"""From a verb and its arguments to a request: where it goes, what it carries, and what comes back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from msgspec import UNSET

from trivet import contract
from trivet.contract import BY_NAME, Request
from trivet.errors import InvalidInput, StoreError
from trivet.ids import new_id
from trivet.routes import ROUTES, Method, Route
from trivet.types import Imported, Remembered

# Of two routes to an operation the first is taken: a recall by POST keeps what was asked out of logs.
ROUTE_OF: Mapping[str, Route] = {route.operation: route for route in reversed(ROUTES)}
BATCH = "/v1/memories/batch"
EXPORT = "/v1/export"
IMPORT = "/v1/import"
LINES = "application/x-ndjson"
# What a server would have to remember in order to repeat its answer.
NEVER_REPEATED = ("reveal",)

# What cannot be asked of a server, and what to do instead.
ELSEWHERE: Mapping[str, str] = {
    "backup": "Run `trivet backup FILE` on the server's machine, or take an export(), which travels.",
    "doctor": "Run `trivet doctor` on the server's machine; its /readyz tells whether it can answer.",
    "tidy": "Run `trivet tidy` on the server's machine.",
    "budgets": "Run `trivet status` on the server's machine.",
    "reindex": "Run `trivet reindex` on the server's machine.",
    "drain": "The server embeds by itself; stats().not_embedded tells how many memories still wait.",
    "embed": "The server embeds by itself; to try again at once what failed, run `trivet embed` on its machine.",
    "redact": "Run `trivet redact` on the server's machine.",
    "rotate_keys": "Run `trivet rotate-keys` on the server's machine.",
    "acting_as": "The key says for whom; open another client with another key.",
    "engine": "What looks inside a store (`trivet user`, `key`, `tune`, the lab) needs the store itself.",
}


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """`path` comes after the server's address. `once` lets the server tell a repeated write from a second one.

    `carries` is the type of a body that is streamed. `known` is the answer where there is nothing to ask.
    """

    method: Method
    path: str
    body: bytes = b""
    result: Any = None
    writes: bool = False
    once: str = ""
    carries: str = ""
    known: Any = UNSET

    @property
    def repeatable(self) -> bool:
        """Whether it may be sent again when nobody knows what became of it."""
        return not self.writes or bool(self.once)

    @property
    def headers(self) -> dict[str, str]:
        kind = self.carries or ("application/json" if self.body else "")
        named = {"Content-Type": kind, "Idempotency-Key": self.once}
        return {name: value for name, value in named.items() if value}


def arguments_of(method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """What a method was called with, by name, itself left out; wrong arguments are refused as Python refuses them."""
    bound = _signature(method).bind(None, *args, **kwargs)
    return {name: value for name, value in bound.arguments.items() if name != "self"}


def call_of(verb: str, arguments: Mapping[str, Any], scope: str | None = None) -> Call:
    """A verb of the facade with its arguments. `scope` is where a memory belongs that names none."""
    if verb == "remember_many":
        return _remember_many(arguments["memories"], scope)
    if verb == "diff":
        return _diff(**arguments)
    if verb == "export":
        return Call(method="GET", path=EXPORT + _query(arguments))
    if verb == "import_":
        return Call(method="POST", path=IMPORT, result=Imported, writes=True, carries=LINES)
    if verb not in ROUTE_OF:
        raise InvalidInput(f"{verb} is not to be had over HTTP. {ELSEWHERE[verb]}")
    operation, route = BY_NAME[verb], ROUTE_OF[verb]
    request = contract.request_of(operation.request, arguments)
    if isinstance(request, contract.Remember):
        request = _named(request, scope)
    writes = not operation.read_only
    return _to(route, _given(request), operation.result, writes, new_id() if _once(verb, writes) else "")


def result_of(call: Call, body: bytes) -> Any:
    if call.result is None and not body:
        return None
    try:
        value = msgspec.json.decode(body, type=call.result)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise StoreError(
            f"The server's answer cannot be read ({str(error).replace('`', '')}). "
            "Is it Trivet, and of the same version as this one?"
        ) from None
    return value.diff if isinstance(value, Difference) else value


@cache
def _signature(method: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(method)


def _once(verb: str, writes: bool) -> bool:
    return writes and verb not in NEVER_REPEATED


def _to(route: Route, given: dict[str, Any], result: Any, writes: bool, once: str) -> Call:
    """What the path names goes there, the rest into the query or the body."""
    path = route.path.format(**{name: quote(given.pop(name), safe="") for name in route.in_path})
    if route.in_query:
        return Call(method=route.method, path=path + _query(given), result=result, writes=writes, once=once)
    body = msgspec.json.encode(given)
    return Call(method=route.method, path=path, body=body, result=result, writes=writes, once=once)


def _query(given: Mapping[str, Any]) -> str:
    pairs = [
        (name, _spelt(value))
        for name, values in given.items()
        for value in (values if isinstance(values, tuple) else (values,))
    ]
    return f"?{urlencode(pairs)}" if pairs else ""


def _spelt(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _given(request: Request) -> dict[str, Any]:
    """What differs from the defaults, which the server has too."""
    return {
        field.name: value
        for field in msgspec.structs.fields(request)
        if (value := getattr(request, field.name)) != field.default
    }


def _named(request: contract.Remember, scope: str | None) -> contract.Remember:
    """With the id made here, a write that is repeated can never become two memories."""
    return msgspec.structs.replace(request, id=request.id or new_id(), scope=request.scope or scope)


def _remember_many(memories: Iterable[Mapping[str, Any]], scope: str | None) -> Call:
    checked = [_given(_named(contract.check(contract.Remember, memory), scope)) for memory in memories]
    body = msgspec.json.encode({"memories": checked})
    known: Any = UNSET if checked else []
    return Call(method="POST", path=BATCH, body=body, result=list[Remembered], writes=True, once=new_id(), known=known)


class Difference(msgspec.Struct, frozen=True):
    diff: str


def _diff(id: str, older: int, newer: int, reveal: bool = False) -> Call:
    request = contract.check(contract.History, {"id": id, "reveal": reveal})
    query = _query({"older": older, "newer": newer} | ({"reveal": True} if reveal else {}))
    return Call(method="GET", path=f"/v1/memories/{quote(request.id, safe='')}/diff{query}", result=Difference)
