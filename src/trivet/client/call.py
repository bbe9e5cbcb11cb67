"""HTTP calls built from requests, and their results; imports and exports as streams of lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
from msgspec import UNSET

from trivet.common.ids import new_id
from trivet.common.threads import prepared_type
from trivet.contract import History, Remember, Request, Route, check, given, verb_of
from trivet.contract.verb import Method
from trivet.errors import InvalidInput, StoreError
from trivet.types import Imported, Progress, Remembered

BATCH = "/v1/memories/batch"
EXPORT = "/v1/export"
IMPORT = "/v1/import"
LINES = "application/x-ndjson"
NOT_A_VERB = {
    "acting_as": "The key determines the user; open another client with another key.",
    "engine": "Tools that look inside a store (`trivet tune`, the lab) need the store itself.",
}


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP call; `once` is its idempotency key, `known` the result if no request is needed."""

    method: Method
    path: str
    body: bytes = b""
    result: Any = None
    writes: bool = False
    once: str = ""
    carries: str = ""
    id: str = ""
    known: Any = UNSET

    @property
    def repeatable(self) -> bool:
        return not self.writes or bool(self.once)

    @property
    def headers(self) -> dict[str, str]:
        kind = self.carries or ("application/json" if self.body else "")
        named = {"Content-Type": kind, "Idempotency-Key": self.once}
        return {name: value for name, value in named.items() if value}


def call_of(request: Request[Any], scope: str | None = None) -> Call:
    """Return a request's call; `scope` is the default for new memories."""
    verb = verb_of(request)
    if not verb.routes:
        raise unsupported_over_http(verb.name, verb.instead)
    if isinstance(request, Remember):
        request = _with_id(request, scope)
    once = new_id() if verb.is_deduplicated else ""
    call = _to(verb.routes[0], given(request), verb.result, not verb.read_only, once)
    return (
        msgspec.structs.replace(call, id=request.id or "")
        if isinstance(request, Remember)
        else call
    )


def remember_many(memories: Iterable[Mapping[str, Any] | Remember], scope: str | None) -> Call:
    requests = [one if isinstance(one, Remember) else check(Remember, one) for one in memories]
    checked = [given(_with_id(request, scope)) for request in requests]
    body = msgspec.json.encode({"memories": checked})
    known: Any = UNSET if checked else []
    return Call(
        method="POST",
        path=BATCH,
        body=body,
        result=list[Remembered],
        writes=True,
        once=new_id(),
        known=known,
    )


def diff(id: str, older: int, newer: int, reveal: bool) -> Call:
    request = check(History, {"id": id, "reveal": reveal})
    query = _query({"older": older, "newer": newer} | ({"reveal": True} if reveal else {}))
    return Call(
        method="GET",
        path=f"/v1/memories/{quote(request.id, safe='')}/diff{query}",
        result=Difference,
    )


def export(include_sensitive: bool) -> Call:
    return Call(
        method="GET", path=EXPORT + _query({"include_sensitive": True} if include_sensitive else {})
    )


def import_() -> Call:
    return Call(method="POST", path=IMPORT, result=Imported, writes=True, carries=LINES)


def unsupported_over_http(name: str, instead: str = "") -> InvalidInput:
    return InvalidInput(
        f"{name} is not available over HTTP. {instead or NOT_A_VERB.get(name, '')}".rstrip()
    )


class Difference(msgspec.Struct, frozen=True):
    diff: str


def result_of(call: Call, body: bytes) -> Any:
    if call.result is None and not body:
        return None
    try:
        value = msgspec.json.decode(body, type=prepared_type(call.result))
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise StoreError(
            f"The server's answer cannot be read ({str(error).replace('`', '')}). "
            "Check that it is Trivet and has the same version as this client."
        ) from None
    return value.diff if isinstance(value, Difference) else value


def _to(route: Route, arguments: dict[str, Any], result: Any, writes: bool, once: str) -> Call:
    path = route.path.format(
        **{name: quote(arguments.pop(name), safe="") for name in route.in_path}
    )
    if route.in_query:
        return Call(
            method=route.method,
            path=path + _query(arguments),
            result=result,
            writes=writes,
            once=once,
        )
    body = msgspec.json.encode(arguments)
    return Call(method=route.method, path=path, body=body, result=result, writes=writes, once=once)


def _query(arguments: Mapping[str, Any]) -> str:
    pairs = [
        (name, _query_text(value))
        for name, values in arguments.items()
        for value in (values if isinstance(values, tuple) else (values,))
    ]
    return f"?{urlencode(pairs)}" if pairs else ""


def _query_text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _with_id(request: Remember, scope: str | None) -> Remember:
    # With an id made here, a repeated write never becomes two memories.
    return msgspec.structs.replace(request, id=request.id or new_id(), scope=request.scope or scope)


# Format 1 has no last line.
_HEADER = b'{"trivet_export":'
_WITHOUT_LAST_LINE = b'{"trivet_export":1,'
_LAST_LINE = b'{"trivet_export_end":'
CHUNK_BYTES = 64 * 1024


def encode_chunks(lines: Iterable[str], progress: Progress | None) -> Iterator[bytes]:
    """Yield chunks of lines, without line breaks inside a line.

    Invalid Unicode is sent as it is; the server reports its line.
    """
    piece, count = bytearray(), 0
    for line in lines:
        piece += (
            line.rstrip("\r\n").replace("\r", " ").replace("\n", " ").encode(errors="surrogatepass")
            + b"\n"
        )
        count += 1
        if len(piece) >= CHUNK_BYTES:
            yield bytes(piece)
            _report(progress, count)
            piece, count = bytearray(), 0
    if piece:
        yield bytes(piece)
        _report(progress, count)


class LineReader:
    """A splitter of an export at line feeds: texts may contain other line breaks."""

    def __init__(self) -> None:
        self._begun = b""
        self._ends = False  # whether the export must end with a last line
        self._latest = b""

    def of(self, piece: bytes) -> list[str]:
        *whole, self._begun = (self._begun + piece).split(b"\n")
        for line in whole:
            self._ends |= line.startswith(_HEADER) and not line.startswith(_WITHOUT_LAST_LINE)
            self._latest = line
        return [line.decode() for line in whole]

    def last(self) -> list[str]:
        """Return the rest, or raise if the export is incomplete.

        A proxy may end a broken response as if it were complete.
        """
        if self._ends and not (self._begun or self._latest).startswith(_LAST_LINE):
            raise StoreError("The export is incomplete: its last line is missing. Export again.")
        return [self._begun.decode()] if self._begun else []


def _report(progress: Progress | None, count: int) -> None:
    if progress is not None:
        progress(count)
