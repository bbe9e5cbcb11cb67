"""The types of parameters: what each may hold, its bounds, and the text that every surface shows for it.

Checks arguments against a request, and says what was wrong in words that teach.
"""

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
# Python's $ alone would let a final line break through. Schemas that others read leave this out (see json_schema).
NO_LINE_BREAK = r"(?!\n)"
SCOPE_PATTERN = r"^[\w.-]+(/[\w.-]+)*$" + NO_LINE_BREAK
NAME_PATTERN = r"^[a-z0-9][a-z0-9._@-]*$" + NO_LINE_BREAK
USER_PATTERN = r"^([a-z0-9][a-z0-9._@-]*|\*)$" + NO_LINE_BREAK
LARGEST_NUMBER = 2**31 - 1

# What an id names; it stands beside the bounds of the parameter, as `extra`.
IdOf = Literal["memory", "proposal"]
# An id is accepted by its first characters from this many on; `memory/whole_ids.py` completes it.
MIN_ID_PREFIX = 4
ID_LENGTH = 36

Id = Annotated[
    str,
    Meta(
        min_length=MIN_ID_PREFIX,
        max_length=ID_LENGTH,
        description="The id of a memory, or its first characters (at least 4).",
        extra={"id_of": "memory"},
    ),
]
OwnId = Annotated[str, Meta(min_length=ID_LENGTH, max_length=ID_LENGTH)]
Content = Annotated[
    str,
    Meta(min_length=1, description="The text to remember, self-contained, up to 32 KiB of UTF-8."),
]
Title = Annotated[
    str,
    Meta(max_length=MAX_TITLE_CHARACTERS, description="A short title; its words count in search."),
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
    float, Meta(ge=0, le=1, description="How much it matters, 0 to 1; a gentle prior in recall.")
]
Confidence = Annotated[float, Meta(ge=0, le=1, description="How sure the writer is, 0 to 1.")]
Keywords = Annotated[
    tuple[Tag, ...],
    Meta(
        max_length=50,
        description="Other words people may search by (synonyms, abbreviations); a weaker field.",
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
        description="By how many minutes the days' clock is ahead of UTC; 0 means days in UTC.",
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
        description='What to look for; a query of "quoted words" alone is exact.',
    ),
]
Limit = Annotated[int, Meta(ge=1, le=100, description="How many to return.")]
ConceptText = Annotated[str, Meta(min_length=1, max_length=80)]
User = Annotated[str, Meta(min_length=1, max_length=64, pattern=USER_PATTERN)]
UserName = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=64,
        pattern=NAME_PATTERN,
        description="The name of a user of the server.",
    ),
]
KeyId = Annotated[
    str,
    Meta(min_length=1, max_length=64, description="The id of a key, as the list of keys shows it."),
]
Kind = Annotated[LinkKind, Meta(description="supersedes, resolved-by, part-of or see-also.")]
ProposalId = Annotated[
    str,
    Meta(
        min_length=MIN_ID_PREFIX,
        max_length=ID_LENGTH,
        description="The id of a proposal, or its first characters (at least 4).",
        extra={"id_of": "proposal"},
    ),
]
ProposalIds = Annotated[
    tuple[ProposalId, ...],
    Meta(
        min_length=1,
        max_length=100,
        description="The ids of proposals, or their first characters; up to 100.",
    ),
]
Action = Annotated[
    ProposalAction,
    Meta(
        description="What accepting it does: add a memory, update or supersede the one it concerns, or nothing."
    ),
]
ConcernedMemory = Annotated[
    Id, Meta(description="The memory that an update or a supersession concerns.")
]
Superseded = Annotated[
    tuple[Id, ...],
    Meta(
        max_length=20,
        description="Ids of memories that this one replaces; they are linked in the same step.",
    ),
]
Reveal = Annotated[bool, Meta(description="Show sensitive contents instead of masking them.")]
PageSize = Annotated[int, Meta(ge=1, le=1000, description="How many to return.")]
MaxCount = Annotated[int, Meta(ge=1, le=10_000, description="How many to return.")]
Offset = Annotated[int, Meta(ge=0, le=LARGEST_NUMBER, description="How many to skip.")]
OwnScope = Annotated[
    Scope | None, Meta(description="Where it belongs (user/project); the configured one if none.")
]


@cache
def id_fields(request: type[msgspec.Struct]) -> Mapping[str, IdOf]:
    """The parameters of a request that hold ids of what is stored, and of what kind."""
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
    """The arguments as a valid request, or an error that names the field, the bound and what was given."""
    for field, given in arguments.items():
        if isinstance(given, float) and not math.isfinite(given):
            raise InvalidInput(
                f"{field}: {given} is not a number that can be stored. {describe(request, field)}".rstrip()
            )
    try:
        value = msgspec.convert(
            {name: _as_json_value(one) for name, one in arguments.items()},
            prepared_type(request),
            strict=True,
        )
    except msgspec.ValidationError as error:
        raise InvalidInput(_explain(request, str(error))) from None
    except UnicodeEncodeError:
        raise InvalidInput(
            "The request is not valid Unicode (a lone surrogate). Decode it properly."
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
        raise InvalidInput(
            f"{field}: the text holds a NUL character. Remove it; text must be printable Unicode."
        )
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidInput(
            f"{field}: the text is not valid Unicode (a lone surrogate). Decode it properly."
        ) from None
    if field == "content":
        if not text.strip():
            raise InvalidInput(
                "content: the text is empty. Give the sentence or paragraph to remember."
            )
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
        hint = (
            f"Did you mean {close[0]}?"
            if close
            else f"Known fields: {', '.join(request.__struct_fields__)}."
        )
        return f"{problem.replace('Object', 'the request')}. {hint}"
    return f"{field}: {_plain_problem(problem)}. {describe(request, field)}".rstrip()


def _plain_problem(problem: str) -> str:
    if "matching regex" in problem and "@" in problem:
        return "lower-case letters, digits and . _ @ - are expected, with a letter or a digit first"
    if "matching regex" in problem:
        return (
            "letters, digits, dots, hyphens and underscores, joined by single slashes, are expected"
        )
    if "of length >= 36" in problem or "of length <= 36" in problem:
        return "an id of 36 characters is expected, such as 0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"
    if f"of length >= {MIN_ID_PREFIX}" in problem:
        return f"the first {MIN_ID_PREFIX} characters of an id, or more of them, are expected, such as 0199c2f4"
    return problem.lower().replace("`", "")


def describe(request: type[Parameters], field: str) -> str:
    """The help text of a field, which is the same on every surface."""
    schema = json_schema(request)["properties"].get(field, {})
    inner: dict[str, Any] = next(
        (option for option in schema.get("anyOf", ()) if "description" in option), {}
    )
    return str(schema.get("description") or inner.get("description", ""))


@cache
def json_schema(request: Any) -> dict[str, Any]:
    """The JSON Schema of a request or result, in one document. Treat it as frozen.

    A request's own docstring is the summary of its verb, which every surface shows in its own place.
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
