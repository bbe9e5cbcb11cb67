"""The types of parameters: what each may hold, its bounds, and the text that every surface shows for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Annotated, Any, Literal, get_args

import msgspec
from msgspec import Meta

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
Content = Annotated[str, Meta(min_length=1, description="The text to remember, self-contained, up to 32 KiB of UTF-8.")]
Title = Annotated[str, Meta(max_length=MAX_TITLE_CHARACTERS, description="A short title; its words count in search.")]
Category = Annotated[str, Meta(min_length=1, max_length=64, description="One of the configured categories.")]
Tag = Annotated[str, Meta(min_length=1, max_length=MAX_TAG_CHARACTERS)]
Tags = Annotated[tuple[Tag, ...], Meta(max_length=MAX_TAGS, description="Tags, up to 50, each up to 64 characters.")]
Importance = Annotated[float, Meta(ge=0, le=1, description="How much it matters, 0 to 1; a gentle prior in recall.")]
Confidence = Annotated[float, Meta(ge=0, le=1, description="How sure the writer is, 0 to 1.")]
Keywords = Annotated[
    tuple[Tag, ...],
    Meta(max_length=50, description="Other words people may search by (synonyms, abbreviations); a weaker field."),
]
Scope = Annotated[
    str,
    Meta(max_length=200, pattern=SCOPE_PATTERN, description="A path-like name such as user/project."),
]
SourceUri = Annotated[
    str,
    Meta(min_length=1, max_length=MAX_SOURCE_CHARACTERS, description="Where it came from: a URI or a path."),
]
SourceText = Annotated[str, Meta(min_length=1, max_length=200)]
UtcOffset = Annotated[
    int,
    Meta(ge=-1440, le=1440, description="By how many minutes the days' clock is ahead of UTC; 0 means days in UTC."),
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
    str, Meta(min_length=1, max_length=64, pattern=NAME_PATTERN, description="The name of a user of the server.")
]
KeyId = Annotated[str, Meta(min_length=1, max_length=64, description="The id of a key, as the list of keys shows it.")]
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
    Meta(min_length=1, max_length=100, description="The ids of proposals, or their first characters; up to 100."),
]
Action = Annotated[
    ProposalAction,
    Meta(description="What accepting it does: add a memory, update or supersede the one it concerns, or nothing."),
]
ConcernedMemory = Annotated[Id, Meta(description="The memory that an update or a supersession concerns.")]
Superseded = Annotated[
    tuple[Id, ...],
    Meta(max_length=20, description="Ids of memories that this one replaces; they are linked in the same step."),
]
Reveal = Annotated[bool, Meta(description="Show sensitive contents instead of masking them.")]
PageSize = Annotated[int, Meta(ge=1, le=1000, description="How many to return.")]
MaxCount = Annotated[int, Meta(ge=1, le=10_000, description="How many to return.")]
Offset = Annotated[int, Meta(ge=0, le=LARGEST_NUMBER, description="How many to skip.")]
OwnScope = Annotated[Scope | None, Meta(description="Where it belongs (user/project); the configured one if none.")]


@cache
def id_fields(request: type[msgspec.Struct]) -> Mapping[str, IdOf]:
    """The parameters of a request that hold ids of what is stored, and of what kind."""
    found = {field.name: next(_ids_within(field.type), None) for field in msgspec.structs.fields(request)}
    return {name: kind for name, kind in found.items() if kind is not None}


def _ids_within(annotation: Any) -> Iterator[IdOf]:
    for meta in getattr(annotation, "__metadata__", ()):
        if isinstance(meta, Meta) and meta.extra and "id_of" in meta.extra:
            yield meta.extra["id_of"]
    for part in get_args(annotation):
        if not isinstance(part, Meta):
            yield from _ids_within(part)
