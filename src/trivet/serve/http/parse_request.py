"""From the bytes of a request to the arguments of an operation. What cannot be read says so, and why."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from functools import cache
from typing import Any
from urllib.parse import parse_qsl

import msgspec
from starlette.requests import Request

from trivet import contract
from trivet.serve.http.errors import Malformed, TooLarge, TooSlow, WrongMediaType

_WHOLE = re.compile(r"-?\d{1,18}")
_NUMBER = re.compile(r"-?\d{1,18}(\.\d{1,30})?([eE][+-]?\d{1,3})?")
_FLAGS = {"true": True, "false": False}
# More than any route has, with lists of the longest kind.
MOST_PARAMETERS = 500


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
        raise Malformed("The body is nested too deeply. No field of this server holds more than a list.") from None


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
        raise TooSlow(f"The body was not here after {seconds:g} s. Nothing was done; send it faster.") from None
    return bytes(parts)


def check_ndjson(request: Request) -> None:
    _check_media_type(request, "application/x-ndjson", "application/jsonl", "application/x-jsonlines")


def _check_media_type(request: Request, *accepted: str) -> None:
    if request.headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise WrongMediaType("The body is compressed, and this server reads none so. Send it as it is.")
    given, _, parameters = request.headers.get("content-type", "").partition(";")
    charset = parameters.replace(" ", "").replace('"', "").lower()
    if given.strip().lower() not in accepted or charset not in ("", "charset=utf-8", "charset=utf8"):
        raise WrongMediaType(f"The body must be {accepted[0]} in UTF-8. Say so in the header Content-Type.")


def _too_large(most_bytes: int) -> TooLarge:
    return TooLarge(
        f"The body has more than {most_bytes:,} bytes, and this server reads no more. Nothing was done; "
        "split it, or import lines by POST /v1/import."
    )


def _pairs(query: bytes) -> list[tuple[str, str]]:
    try:
        return parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict", max_num_fields=MOST_PARAMETERS)
    except UnicodeError:
        raise Malformed("The query is not UTF-8 in percent encoding. Encode it so.") from None
    except ValueError:
        raise Malformed(f"The query has more than {MOST_PARAMETERS} parameters. Leave some out.") from None


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
