"""The types, bounds and texts of parameters, and the checks of a request's arguments."""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_args

import msgspec
from msgspec import UNSET, Meta

from trivet.common.threads import prepared_type
from trivet.contract.verb import Parameters
from trivet.errors import InvalidInput
from trivet.types import LinkKind, ProposalAction

MAX_CONTENT_BYTES = 32 * 1024
MAX_QUERY_CHARACTERS = 8_000
MAX_TAGS = 50
MAX_TAG_CHARACTERS = 64
MAX_TITLE_CHARACTERS = 300
MAX_SOURCE_CHARACTERS = 2000
# Python's $ also matches before a final line break. `json_schema` leaves this out for other
# readers.
NO_LINE_BREAK = r"(?!\n)"
SCOPE_PATTERN = r"^[\w.-]+(/[\w.-]+)*$" + NO_LINE_BREAK
NAME_PATTERN = r"^[a-z0-9][a-z0-9._@-]*$" + NO_LINE_BREAK
USER_PATTERN = r"^([a-z0-9][a-z0-9._@-]*|\*)$" + NO_LINE_BREAK
LARGEST_NUMBER = 2**31 - 1

IdOf = Literal["memory", "proposal"]
# Shortest accepted id prefix; `memory/perform.py` completes it.
MIN_ID_PREFIX = 4
ID_LENGTH = 36

Id = Annotated[
    str,
    Meta(
        min_length=MIN_ID_PREFIX,
        max_length=ID_LENGTH,
        description="A memory's id, or at least its first 4 characters.",
        extra={"id_of": "memory"},
    ),
]
OwnId = Annotated[str, Meta(min_length=ID_LENGTH, max_length=ID_LENGTH)]
Content = Annotated[
    str,
    Meta(min_length=1, description="The self-contained text to remember, up to 32 KiB of UTF-8."),
]
Title = Annotated[
    str,
    Meta(max_length=MAX_TITLE_CHARACTERS, description="A short title; searched too."),
]
Category = Annotated[
    str, Meta(min_length=1, max_length=64, description="One of the configured categories.")
]
Tag = Annotated[str, Meta(min_length=1, max_length=MAX_TAG_CHARACTERS)]
Tags = Annotated[
    tuple[Tag, ...],
    Meta(max_length=MAX_TAGS, description="Tags, up to 50, each up to 64 characters."),
]
Importance = Annotated[
    float, Meta(ge=0, le=1, description="How much it matters, 0 to 1; a weak prior in recall.")
]
Confidence = Annotated[float, Meta(ge=0, le=1, description="How sure the writer is, 0 to 1.")]
Keywords = Annotated[
    tuple[Tag, ...],
    Meta(
        max_length=50,
        description="Other words to find it by (synonyms, abbreviations); weigh less.",
    ),
]
Scope = Annotated[
    str,
    Meta(
        max_length=200, pattern=SCOPE_PATTERN, description="A path-like name such as user/project."
    ),
]
SourceUri = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_SOURCE_CHARACTERS,
        description="Where it came from: a URI or a path.",
    ),
]
SourceText = Annotated[str, Meta(min_length=1, max_length=200)]
UtcOffset = Annotated[
    int,
    Meta(
        ge=-1440,
        le=1440,
        description="Minutes that the days' time zone is ahead of UTC; 0 means UTC days.",
    ),
]
Positive = Annotated[int, Meta(ge=1, le=LARGEST_NUMBER)]
Budget = Annotated[int, Meta(ge=50, le=200_000)]
RecipeText = Annotated[str, Meta(max_length=500)]
Time = Annotated[str, Meta(max_length=40, extra={"is": "time"})]
Query = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=MAX_QUERY_CHARACTERS,
        description='What to look for; a query of only "quoted words" matches exactly.',
    ),
]
Limit = Annotated[int, Meta(ge=1, le=100, description="Maximum number to return.")]
ConceptText = Annotated[str, Meta(min_length=1, max_length=80)]
User = Annotated[str, Meta(min_length=1, max_length=64, pattern=USER_PATTERN)]
UserName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        pattern=NAME_PATTERN,
        description="The name of a server's user.",
    ),
]
KeyId = Annotated[
    str,
    Meta(min_length=1, max_length=64, description="A key's id, as list_keys shows it."),
]
Kind = Annotated[LinkKind, Meta(description="supersedes, resolved-by, part-of or see-also.")]
ProposalId = Annotated[
    str,
    Meta(
        min_length=MIN_ID_PREFIX,
        max_length=ID_LENGTH,
        description="A proposal's id, or at least its first 4 characters.",
        extra={"id_of": "proposal"},
    ),
]
ProposalIds = Annotated[
    tuple[ProposalId, ...],
    Meta(
        min_length=1,
        max_length=100,
        description="Up to 100 ids of proposals, or their first characters.",
    ),
]
Action = Annotated[
    ProposalAction,
    Meta(
        description="What accepting it does: add a memory, update or supersede an existing one, "
        "or nothing."
    ),
]
ConcernedMemory = Annotated[Id, Meta(description="The memory to update or supersede.")]
Superseded = Annotated[
    tuple[Id, ...],
    Meta(
        max_length=20,
        description="Ids of memories that this one replaces; linked in the same transaction.",
    ),
]
Reveal = Annotated[bool, Meta(description="Show sensitive contents unmasked.")]
PageSize = Annotated[int, Meta(ge=1, le=1000, description="Maximum number to return.")]
MaxCount = Annotated[int, Meta(ge=1, le=10_000, description="Maximum number to return.")]
Offset = Annotated[int, Meta(ge=0, le=LARGEST_NUMBER, description="Number to skip.")]
OwnScope = Annotated[
    Scope | None, Meta(description="Its scope, such as user/project; default as configured.")
]


@cache
def id_fields(request: type[msgspec.Struct]) -> Mapping[str, IdOf]:
    """Return the parameters that hold ids, each with the kind of id."""
    found = {
        field.name: next(_ids_within(field.type), None) for field in msgspec.structs.fields(request)
    }
    return {name: kind for name, kind in found.items() if kind is not None}


def _ids_within(annotation: Any) -> Iterator[IdOf]:
    for meta in getattr(annotation, "__metadata__", ()):
        if isinstance(meta, Meta) and meta.extra and "id_of" in meta.extra:
            yield meta.extra["id_of"]
    for part in get_args(annotation):
        if not isinstance(part, Meta):
            yield from _ids_within(part)


R = TypeVar("R", bound=Parameters)


def check(request: type[R], arguments: Mapping[str, Any]) -> R:
    """Return the arguments as a valid request.

    Raises:
        InvalidInput: The message names the field, the bound and the value.
    """
    for field, given in arguments.items():
        if isinstance(given, float) and not math.isfinite(given):
            raise InvalidInput(
                f"{field}: {given} is not a finite number. {describe(request, field)}".rstrip()
            )
    try:
        value = msgspec.convert(
            {name: _as_json_value(argument) for name, argument in arguments.items()},
            prepared_type(request),
            strict=True,
        )
    except msgspec.ValidationError as error:
        raise InvalidInput(_explain(request, str(error))) from None
    except UnicodeEncodeError:
        raise InvalidInput(
            "The request is not valid Unicode: it holds a lone surrogate. Decode it properly."
        ) from None
    for field in request.__struct_fields__:
        given = getattr(value, field)
        if isinstance(given, str):
            _check_text(field, given)
        if isinstance(given, tuple):
            for text in given:
                _check_text(field, text)
    return value


def _as_json_value(value: Any) -> Any:
    return value.isoformat() if isinstance(value, date) else value


def request_of(kind: type[R], arguments: Mapping[str, Any]) -> R:
    """Return a method's arguments as a checked request, without unset ones."""
    given = {
        name: tuple(value) if isinstance(value, (list, tuple, set, frozenset)) else value
        for name in kind.__struct_fields__
        if (value := arguments.get(name, UNSET)) is not UNSET
    }
    return check(kind, given)


def _check_text(field: str, text: str) -> None:
    if "\x00" in text:
        raise InvalidInput(f"{field}: the text contains a NUL character. Remove it.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{field}: the text is not valid Unicode: it holds a lone surrogate. Decode it "
            "properly."
        ) from None
    if field == "content":
        if not text.strip():
            raise InvalidInput(
                "content: the text is empty. Give the sentence or paragraph to remember."
            )
        if size > MAX_CONTENT_BYTES:
            raise InvalidInput(
                f"content: {size:,} bytes, but a memory holds at most {MAX_CONTENT_BYTES:,}. "
                "Split it into self-contained parts and link them with part-of."
            )
    elif field == "query" and not text.strip():
        raise InvalidInput("query: the text is empty. Say in a few words what to look for.")


def _explain(request: type[Parameters], message: str) -> str:
    """Rewrite msgspec's `Expected int >= 1 - at $.limit`: field first, then its purpose."""
    problem, _, place = message.partition(" - at `$")
    field = place.rstrip("`").lstrip(".").split("[")[0]
    if not field:
        given = problem.rpartition("unknown field `")[2].rstrip("`")
        close = difflib.get_close_matches(given, request.__struct_fields__, 1)
        hint = (
            f"Did you mean {close[0]}?"
            if close
            else f"Known fields: {', '.join(request.__struct_fields__)}."
        )
        return f"{problem.replace('Object', 'the request')}. {hint}"
    return f"{field}: {_plain_problem(problem)}. {describe(request, field)}".rstrip()


def _plain_problem(problem: str) -> str:
    if "matching regex" in problem and "@" in problem:
        return "expected lowercase letters, digits and . _ @ -, starting with a letter or digit"
    if "matching regex" in problem:
        return "expected letters, digits, dots, hyphens and underscores, joined by single slashes"
    if "of length >= 36" in problem or "of length <= 36" in problem:
        return "expected an id of 36 characters, such as 0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"
    if f"of length >= {MIN_ID_PREFIX}" in problem:
        return f"expected at least the first {MIN_ID_PREFIX} characters of an id, such as 0199c2f4"
    return problem.lower().replace("`", "")


def describe(request: type[Parameters], field: str) -> str:
    """Return the help text of a field."""
    schema = json_schema(request)["properties"].get(field, {})
    inner: dict[str, Any] = next(
        (option for option in schema.get("anyOf", ()) if "description" in option), {}
    )
    return str(schema.get("description") or inner.get("description", ""))


@cache
def json_schema(request: Any) -> dict[str, Any]:
    """Return the JSON Schema of a request or result; do not modify it.

    A request's schema has no description: surfaces show the verb's summary elsewhere.
    """
    (schema,), definitions = msgspec.json.schema_components(
        [request], ref_template="#/$defs/{name}"
    )
    name = getattr(request, "__name__", "")
    if schema.get("$ref") == f"#/$defs/{name}":
        schema = definitions.pop(name)
    if isinstance(request, type) and issubclass(request, Parameters):
        schema.pop("description", None)
    whole: dict[str, Any] = _portable({**schema, "$defs": definitions} if definitions else schema)
    return whole


def _portable(schema: Any) -> Any:
    """Drop the look-ahead from patterns: RE2 rejects it, and elsewhere $ ends the text."""
    if isinstance(schema, dict):
        return {
            name: value.removesuffix(NO_LINE_BREAK)
            if name == "pattern" and isinstance(value, str)
            else _portable(value)
            for name, value in schema.items()
        }
    return [_portable(value) for value in schema] if isinstance(schema, list) else schema
