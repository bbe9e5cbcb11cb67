"""Checks arguments against a request, and says what was wrong in words that teach."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from datetime import date
from functools import cache
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from trivet.common.threads import prepared_type
from trivet.contract.fields import MAX_CONTENT_BYTES, MIN_ID_PREFIX, NO_LINE_BREAK
from trivet.contract.verb import Parameters
from trivet.errors import InvalidInput

R = TypeVar("R", bound=Parameters)


def check(request: type[R], arguments: Mapping[str, Any]) -> R:
    """The arguments as a valid request, or an error that names the field, the bound and what was given."""
    for field, given in arguments.items():
        if isinstance(given, float) and not math.isfinite(given):
            raise InvalidInput(
                f"{field}: {given} is not a number that can be stored. {describe(request, field)}".rstrip()
            )
    try:
        value = msgspec.convert(
            {name: _as_json_value(one) for name, one in arguments.items()}, prepared_type(request), strict=True
        )
    except msgspec.ValidationError as error:
        raise InvalidInput(_explain(request, str(error))) from None
    except UnicodeEncodeError:
        raise InvalidInput("The request is not valid Unicode (a lone surrogate). Decode it properly.") from None
    for field in request.__struct_fields__:
        given = getattr(value, field)
        if isinstance(given, str):
            _check_text(field, given)
        if isinstance(given, tuple):
            for text in given:
                _check_text(field, text)
    return value


def _as_json_value(value: Any) -> Any:
    """A datetime or a date is taken for its ISO 8601, as every other surface writes it."""
    return value.isoformat() if isinstance(value, date) else value


def request_of(kind: type[R], arguments: Mapping[str, Any]) -> R:
    """A method's own arguments as a checked request. Sequences become tuples, what was left unset is left out."""
    given = {
        name: tuple(value) if isinstance(value, (list, tuple, set, frozenset)) else value
        for name in kind.__struct_fields__
        if (value := arguments.get(name, UNSET)) is not UNSET
    }
    return check(kind, given)


def _check_text(field: str, text: str) -> None:
    if "\x00" in text:
        raise InvalidInput(f"{field}: the text holds a NUL character. Remove it; text must be printable Unicode.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidInput(f"{field}: the text is not valid Unicode (a lone surrogate). Decode it properly.") from None
    if field == "content":
        if not text.strip():
            raise InvalidInput("content: the text is empty. Give the sentence or paragraph to remember.")
        if size > MAX_CONTENT_BYTES:
            raise InvalidInput(
                f"content: {size:,} bytes, and at most {MAX_CONTENT_BYTES:,} fit in one memory. "
                "Split it into self-contained parts and link them with part-of."
            )
    elif field == "query" and not text.strip():
        raise InvalidInput("query: the text is empty. Say in a few words what to look for.")


def _explain(request: type[Parameters], message: str) -> str:
    """msgspec says `Expected int >= 1 - at $.limit`; put the field first and add what the field is for."""
    problem, _, place = message.partition(" - at `$")
    field = place.rstrip("`").lstrip(".").split("[")[0]
    if not field:
        given = problem.rpartition("unknown field `")[2].rstrip("`")
        close = difflib.get_close_matches(given, request.__struct_fields__, 1)
        hint = f"Did you mean {close[0]}?" if close else f"Known fields: {', '.join(request.__struct_fields__)}."
        return f"{problem.replace('Object', 'the request')}. {hint}"
    return f"{field}: {_plain_problem(problem)}. {describe(request, field)}".rstrip()


def _plain_problem(problem: str) -> str:
    if "matching regex" in problem and "@" in problem:
        return "lower-case letters, digits and . _ @ - are expected, with a letter or a digit first"
    if "matching regex" in problem:
        return "letters, digits, dots, hyphens and underscores, joined by single slashes, are expected"
    if "of length >= 36" in problem or "of length <= 36" in problem:
        return "an id of 36 characters is expected, such as 0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"
    if f"of length >= {MIN_ID_PREFIX}" in problem:
        return f"the first {MIN_ID_PREFIX} characters of an id, or more of them, are expected, such as 0199c2f4"
    return problem.lower().replace("`", "")


def describe(request: type[Parameters], field: str) -> str:
    """The help text of a field, which is the same on every surface."""
    schema = json_schema(request)["properties"].get(field, {})
    inner: dict[str, Any] = next((option for option in schema.get("anyOf", ()) if "description" in option), {})
    return str(schema.get("description") or inner.get("description", ""))


@cache
def json_schema(request: Any) -> dict[str, Any]:
    """The JSON Schema of a request or result, in one document. Treat it as frozen.

    A request's own docstring is the summary of its verb, which every surface shows in its own place.
    """
    (schema,), definitions = msgspec.json.schema_components([request], ref_template="#/$defs/{name}")
    name = getattr(request, "__name__", "")
    if schema.get("$ref") == f"#/$defs/{name}":
        schema = definitions.pop(name)
    if isinstance(request, type) and issubclass(request, Parameters):
        schema.pop("description", None)
    whole: dict[str, Any] = _portable({**schema, "$defs": definitions} if definitions else schema)
    return whole


def _portable(schema: Any) -> Any:
    """With patterns that every dialect reads alike: outside of Python a bare $ is the end of the text, and RE2, which
    some clients compile them with, knows no look ahead."""
    if isinstance(schema, dict):
        return {
            name: value.removesuffix(NO_LINE_BREAK)
            if name == "pattern" and isinstance(value, str)
            else _portable(value)
            for name, value in schema.items()
        }
    return [_portable(value) for value in schema] if isinstance(schema, list) else schema
