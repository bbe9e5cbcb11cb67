"""The one contract: names, defaults, bounds and texts of every operation.

The Python facade checks its arguments against it, the command line and MCP are generated from it.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType

from trivet.errors import InvalidInput
from trivet.types import (
    Answer,
    AuditEntry,
    ConceptKind,
    ConceptPage,
    ConceptSort,
    Count,
    Link,
    LinkKind,
    Memory,
    Neighbourhood,
    Page,
    Permission,
    Proposal,
    ProposalAction,
    ProposalKind,
    ProposalPage,
    ProposalState,
    Proposed,
    Remembered,
    Rerank,
    Revision,
    Right,
    Share,
    Sort,
    State,
    Stats,
    Usage,
    Usefulness,
    WhyNot,
)

MAX_CONTENT_BYTES = 32 * 1024
MAX_QUERY_CHARACTERS = 8_000
MAX_TAGS = 50
# Not \Z for the end, which JSON Schema's regular expressions lack; a bare $ would let a final line break through.
SCOPE_PATTERN = r"^[\w.-]+(/[\w.-]+)*$(?!\n)"
USER_PATTERN = r"^([a-z0-9][a-z0-9._@-]*|\*)$(?!\n)"
LARGEST_NUMBER = 2**31 - 1

Id = Annotated[str, Meta(min_length=36, max_length=36, description="The id of a memory (a UUID).")]
Content = Annotated[str, Meta(min_length=1, description="The text to remember, self-contained, up to 32 KiB of UTF-8.")]
Title = Annotated[str, Meta(max_length=300, description="A short title; its words count in search.")]
Category = Annotated[str, Meta(min_length=1, max_length=64, description="One of the configured categories.")]
Tag = Annotated[str, Meta(min_length=1, max_length=64)]
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
SourceUri = Annotated[str, Meta(min_length=1, max_length=2000, description="Where it came from: a URI or a path.")]
Positive = Annotated[int, Meta(ge=1, le=LARGEST_NUMBER)]
Budget = Annotated[int, Meta(ge=50, le=200_000)]
RecipeText = Annotated[str, Meta(max_length=500)]
Time = Annotated[str, Meta(max_length=40)]
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
Kind = Annotated[LinkKind, Meta(description="supersedes, resolved-by, part-of or see-also.")]


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of every request. Unknown fields are refused, so a misspelt option is never ignored."""


class Remember(Request, frozen=True, kw_only=True):
    content: Content
    title: Title | None = None
    category: Category = "facts"
    tags: Tags = ()
    importance: Importance = 0.5
    confidence: Confidence = 1.0
    expanded_keywords: Keywords = ()
    scope: Annotated[Scope | None, Meta(description="Where it belongs (user/project); the configured one if none.")] = (
        None
    )
    source: SourceUri | None = None
    start_line: Annotated[Positive | None, Meta(description="First line in the source.")] = None
    end_line: Annotated[Positive | None, Meta(description="Last line in the source.")] = None
    created_at: Annotated[Time | None, Meta(description="When it was learnt, if not now (ISO 8601).")] = None
    valid_from: Annotated[Time | None, Meta(description="From when on it is true (ISO 8601).")] = None
    valid_to: Annotated[Time | None, Meta(description="Until when it is true (ISO 8601).")] = None
    sensitive: Annotated[
        bool, Meta(description="Never embedded, never sent anywhere, masked in answers; still found by its words.")
    ] = False
    id: Annotated[Id | None, Meta(description="Your own UUID, which makes a retry harmless; made for you if none.")] = (
        None
    )


class Selection(Request, frozen=True, kw_only=True):
    """The filters that `recall`, `list` and `why_not` share."""

    scope: Annotated[Scope | None, Meta(description="Only this scope and those below it.")] = None
    category: Annotated[tuple[Category, ...], Meta(description="Only these categories.")] = ()
    tags: Annotated[Tags, Meta(description="Only memories that carry all of these tags.")] = ()
    state: Annotated[
        tuple[State, ...],
        Meta(description="Only these states; active and superseded if none (a superseded one leads to its successor)."),
    ] = ()
    source: Annotated[SourceUri | None, Meta(description="Only this source (or below it, if it ends with /).")] = None
    created_after: Annotated[Time | None, Meta(description="Only those created at or after (ISO 8601).")] = None
    created_before: Annotated[Time | None, Meta(description="Only those created before (ISO 8601).")] = None
    as_of: Annotated[Time | None, Meta(description="Only what was true at that time; now if none (ISO 8601).")] = None


class Recall(Selection, frozen=True, kw_only=True):
    query: Query
    limit: Limit = 10
    sort: Annotated[Sort, Meta(description="Order of the answer: relevance, importance or recency.")] = "relevance"
    minimum_score: Annotated[float, Meta(ge=0, le=1, description="Leave out hits scored below this, 0 to 1.")] = 0.0
    relevance_at_least: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(description="Answer nothing unless some hit is at least so likely to be relevant; as configured if none."),
    ] = None
    token_budget: Annotated[Budget | None, Meta(description="Stop before contents exceed about so many tokens.")] = None
    per_source: Annotated[Limit | None, Meta(description="At most so many hits from one source.")] = None
    collapse: Annotated[bool, Meta(description="Fold hits that say the same into the best of them.")] = True
    reveal: Annotated[bool, Meta(description="Show sensitive contents instead of masking them.")] = False
    recipe: Annotated[
        RecipeText | None,
        Meta(description="How to retrieve, such as 'rrf(k=60) | depth(50)'; the configured one if none."),
    ] = None
    expand: Annotated[
        bool | None,
        Meta(description="Where the answer is unsure, ask the query's parts or rewrites too; as configured if none."),
    ] = None
    rerank: Annotated[
        Rerank | None,
        Meta(description="A second look at the best candidates: off, fast or best; as configured if none."),
    ] = None


class RecallRequest(Recall, frozen=True, kw_only=True):
    federated: Annotated[
        bool, Meta(description="Ask the other systems that the settings declare, too, and fuse what they find.")
    ] = False


class Get(Request, frozen=True, kw_only=True):
    id: Id
    reveal: Annotated[bool, Meta(description="Show sensitive content instead of masking it.")] = False


class List(Selection, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many to return.")] = 20
    offset: Annotated[int, Meta(ge=0, le=LARGEST_NUMBER, description="How many to skip.")] = 0
    sort: Annotated[
        Sort, Meta(description="Order: recency or importance; without a query, relevance means recency.")
    ] = "recency"
    reveal: Annotated[bool, Meta(description="Show sensitive contents instead of masking them.")] = False


class Edit(Request, frozen=True, kw_only=True):
    id: Id
    content: Content | UnsetType = UNSET
    title: Title | UnsetType | None = UNSET
    category: Category | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    importance: Importance | UnsetType = UNSET
    confidence: Confidence | UnsetType = UNSET
    expanded_keywords: Keywords | UnsetType = UNSET
    scope: Scope | UnsetType = UNSET
    source: SourceUri | UnsetType | None = UNSET
    start_line: Annotated[Positive | UnsetType | None, Meta(description="First line in the source.")] = UNSET
    end_line: Annotated[Positive | UnsetType | None, Meta(description="Last line in the source.")] = UNSET
    valid_from: Annotated[Time | UnsetType | None, Meta(description="From when on it is true (ISO 8601).")] = UNSET
    valid_to: Annotated[Time | UnsetType | None, Meta(description="Until when it is true (ISO 8601).")] = UNSET
    state: Annotated[State | UnsetType, Meta(description="active or archived; to delete, use forget.")] = UNSET
    sensitive: Annotated[bool | UnsetType, Meta(description="Mask it and drop its vectors, or undo that.")] = UNSET
    if_revision: Annotated[
        Positive | None, Meta(description="Refuse the edit unless it is still at this revision.")
    ] = None


class Forget(Request, frozen=True, kw_only=True):
    id: Id


class Restore(Request, frozen=True, kw_only=True):
    id: Id
    revision: Annotated[Positive | None, Meta(description="Bring this revision back; the last one if none.")] = None


class Purge(Request, frozen=True, kw_only=True):
    id: Id


class LinkRequest(Request, frozen=True, kw_only=True):
    source: Annotated[Id, Meta(description="The memory the sentence starts with: SOURCE supersedes TARGET.")]
    kind: Kind
    target: Annotated[Id, Meta(description="The memory the sentence ends with.")]


class Reveal(Request, frozen=True, kw_only=True):
    id: Id


class LinksRequest(Request, frozen=True, kw_only=True):
    id: Id


class ShareRequest(Request, frozen=True, kw_only=True):
    """Of a memory by its id, or of all one's memories with a tag, those of later included."""

    user: Annotated[User, Meta(description="Who may see it; * for every user of this server's tenant.")]
    id: Annotated[Id | None, Meta(description="The memory to share; or name a tag.")] = None
    tag: Annotated[Tag | None, Meta(description="Share every memory of yours that carries this tag, now or later.")] = (
        None
    )
    permission: Annotated[Permission, Meta(description="read, or write, which includes edits.")] = "read"


class UnshareRequest(Request, frozen=True, kw_only=True):
    user: Annotated[User, Meta(description="Who shall not see it any longer; * for the share with everyone.")]
    id: Annotated[Id | None, Meta(description="The memory that was shared; or name the tag.")] = None
    tag: Annotated[Tag | None, Meta(description="The tag that was shared.")] = None


class SharesRequest(Request, frozen=True, kw_only=True):
    pass


class TagsRequest(Selection, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=10_000, description="How many to return.")] = 100


class CategoriesRequest(Selection, frozen=True, kw_only=True):
    pass


class AuditRequest(Request, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=10_000, description="How many to return.")] = 50


class History(Request, frozen=True, kw_only=True):
    id: Id
    reveal: Annotated[bool, Meta(description="Show sensitive contents instead of masking them.")] = False


class WhyNotRequest(Recall, frozen=True, kw_only=True):
    id: Id


class ConceptsRequest(Selection, frozen=True, kw_only=True):
    text: Annotated[ConceptText | None, Meta(description="Only concepts with this in their name; all if none.")] = None
    kind: Annotated[ConceptKind | None, Meta(description="Only concepts of this kind.")] = None
    sort: Annotated[ConceptSort, Meta(description="Order: by the number of memories, or by name.")] = "memories"
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many to return.")] = 50
    offset: Annotated[int, Meta(ge=0, le=LARGEST_NUMBER, description="How many to skip.")] = 0


class GraphRequest(Selection, frozen=True, kw_only=True):
    start: Annotated[str, Meta(min_length=1, max_length=200, description="A memory's id, or a concept in any writing.")]
    depth: Annotated[int, Meta(ge=1, le=4, description="How many steps to go from there.")] = 2
    limit: Annotated[int, Meta(ge=2, le=500, description="How many memories and concepts to show at most.")] = 40


ProposalId = Annotated[str, Meta(min_length=36, max_length=36, description="The id of a proposal (a UUID).")]
ProposalIds = Annotated[
    tuple[ProposalId, ...], Meta(min_length=1, max_length=100, description="The ids of proposals, up to 100.")
]
Action = Annotated[
    ProposalAction,
    Meta(description="What accepting it does: add a memory, update or supersede the one it concerns, or nothing."),
]
Concerned = Annotated[Id, Meta(description="The memory that an update or a supersession concerns.")]


class InboxList(Request, frozen=True, kw_only=True):
    state: Annotated[ProposalState, Meta(description="Those that wait, or those accepted or rejected.")] = "waiting"
    limit: Annotated[int, Meta(ge=1, le=1000, description="How many to return.")] = 20
    offset: Annotated[int, Meta(ge=0, le=LARGEST_NUMBER, description="How many to skip.")] = 0


class InboxShow(Request, frozen=True, kw_only=True):
    id: ProposalId


class InboxPropose(Request, frozen=True, kw_only=True):
    content: Content
    kind: Annotated[ProposalKind, Meta(description="What makes it worth keeping.")] = "told"
    reason: Annotated[str, Meta(max_length=300, description="Why it is proposed, for whoever reviews it.")] = ""
    action: Action = "add"
    memory: Concerned | None = None
    category: Category = "facts"
    tags: Tags = ()
    scope: Annotated[Scope | None, Meta(description="Where it belongs (user/project); the configured one if none.")] = (
        None
    )
    source: SourceUri | None = None


class InboxAccept(Request, frozen=True, kw_only=True):
    ids: ProposalIds


class InboxReject(Request, frozen=True, kw_only=True):
    ids: ProposalIds


class InboxEdit(Request, frozen=True, kw_only=True):
    id: ProposalId
    content: Content | UnsetType = UNSET
    category: Category | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    action: Action | UnsetType = UNSET
    memory: Concerned | UnsetType | None = UNSET


class FeedbackRequest(Request, frozen=True, kw_only=True):
    id: Id
    verdict: Annotated[Usefulness, Meta(description="Whether it helped: useful or not-useful.")]
    query: Annotated[Query | None, Meta(description="What was asked when it came; then `trivet tune` can use it.")] = (
        None
    )


class UsageRequest(Request, frozen=True, kw_only=True):
    id: Id


class StatsRequest(Request, frozen=True, kw_only=True):
    pass


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One verb: what it takes, what it gives, and what a caller must know."""

    name: str
    request: type[Request]
    result: Any
    summary: str
    needs: Right = "write"
    read_only: bool = False
    destructive: bool = False
    idempotent: bool = True


OPERATIONS: tuple[Operation, ...] = (
    Operation(
        name="remember",
        request=Remember,
        result=Remembered,
        summary="Store one memory. Near-duplicates already stored are reported, never merged.",
        idempotent=False,  # unless the caller gives the id
    ),
    Operation(
        name="recall",
        request=RecallRequest,
        result=Answer,
        summary="Find the memories that matter for a query, each with the reason why it was found.",
        needs="read",
        read_only=True,
    ),
    Operation(
        name="get",
        request=Get,
        result=Memory,
        summary="Show one memory by its id.",
        needs="read",
        read_only=True,
    ),
    Operation(
        name="list",
        request=List,
        result=Page,
        summary="List memories, newest first, with filters.",
        needs="read",
        read_only=True,
    ),
    Operation(
        name="edit",
        request=Edit,
        result=Memory,
        summary="Change a memory. The old revision is kept; search sees the new text at once.",
        idempotent=False,
    ),
    Operation(
        name="forget",
        request=Forget,
        result=Memory,
        summary="Delete a memory softly: it leaves every index at once and can be restored.",
        destructive=True,
    ),
    Operation(
        name="restore",
        request=Restore,
        result=Memory,
        summary="Bring back a forgotten memory, or an earlier revision of it.",
        idempotent=False,
    ),
    Operation(
        name="purge",
        request=Purge,
        result=None,
        summary="Remove a memory, its history, vectors and links for good. This cannot be undone.",
        destructive=True,
    ),
    Operation(
        name="link",
        request=LinkRequest,
        result=Link,
        summary="Link two memories: SOURCE supersedes, is resolved by, is part of, or see also TARGET.",
    ),
    Operation(name="unlink", request=LinkRequest, result=None, summary="Remove a link between two memories."),
    Operation(
        name="links",
        request=LinksRequest,
        result=tuple[Link, ...],
        summary="Show every link that starts or ends at a memory.",
        needs="read",
        read_only=True,
    ),
    Operation(
        name="share",
        request=ShareRequest,
        result=Share,
        summary="Let another user of the server see a memory, or all of yours with a tag.",
        needs="share",
    ),
    Operation(
        name="unshare",
        request=UnshareRequest,
        result=None,
        summary="Take back what was shared; it is out of the other's sight at once.",
        needs="share",
    ),
    Operation(
        name="shares",
        request=SharesRequest,
        result=tuple[Share, ...],
        summary="List what you share and what is shared with you.",
        needs="read",
        read_only=True,
    ),
    Operation(
        name="reveal",
        request=Reveal,
        result=Memory,
        needs="reveal",
        summary="Show one memory with its secrets and private parts, which is written to the audit record.",
        idempotent=False,
    ),
    Operation(
        name="history",
        request=History,
        result=tuple[Revision, ...],
        summary="Show every revision of a memory, oldest first.",
        needs="read",
        read_only=True,
    ),
    Operation(
        name="why_not",
        request=WhyNotRequest,
        result=WhyNot,
        summary="Explain why a memory did not come back for a query, or where it came.",
        needs="read",
        read_only=True,
    ),
    Operation(
        name="concepts",
        request=ConceptsRequest,
        result=ConceptPage,
        summary="List the concepts that memories mention, those mentioned most first.",
        needs="read",
        read_only=True,
    ),
    Operation(
        name="graph",
        request=GraphRequest,
        result=Neighbourhood,
        summary="Show what a memory or a concept is connected with, and how.",
        needs="read",
        read_only=True,
    ),
    Operation(
        name="tags",
        request=TagsRequest,
        result=tuple[Count, ...],
        summary="Count the memories of each tag, the most used first.",
        needs="read",
        read_only=True,
    ),
    Operation(
        name="categories",
        request=CategoriesRequest,
        result=tuple[Count, ...],
        summary="Count the memories of each category, those without any included.",
        needs="read",
        read_only=True,
    ),
    Operation(
        name="audit",
        request=AuditRequest,
        result=tuple[AuditEntry, ...],
        summary="Show who did what, the latest first: your own acts, or everybody's if you have the store.",
        needs="read",
        read_only=True,
    ),
    Operation(
        name="inbox_list",
        request=InboxList,
        result=ProposalPage,
        summary="List the proposals of your inbox, newest first.",
        needs="read",
        read_only=True,
    ),
    Operation(
        name="inbox_show",
        request=InboxShow,
        result=Proposal,
        summary="Show one proposal by its id.",
        needs="read",
        read_only=True,
    ),
    Operation(
        name="inbox_propose",
        request=InboxPropose,
        result=Proposed,
        summary="Propose a memory for review. What is stored, waits or was rejected already is not proposed again.",
    ),
    Operation(
        name="inbox_accept",
        request=InboxAccept,
        result=tuple[Proposal, ...],
        summary="Accept proposals: all of them are stored, or at the first error none.",
    ),
    Operation(
        name="inbox_edit",
        request=InboxEdit,
        result=Proposal,
        summary="Change a waiting proposal before it is accepted.",
    ),
    Operation(
        name="inbox_reject",
        request=InboxReject,
        result=tuple[Proposal, ...],
        summary="Reject proposals. What they say is not proposed again.",
    ),
    Operation(
        name="feedback",
        request=FeedbackRequest,
        result=Usage,
        summary="Say whether a memory that came was useful. It is kept for tuning and changes no rank.",
    ),
    Operation(
        name="usage",
        request=UsageRequest,
        result=Usage,
        summary="Show how often recall showed a memory, and what was said of it.",
        needs="read",
        read_only=True,
    ),
    Operation(
        name="stats", request=StatsRequest, result=Stats, summary="Count what the store holds and the work waiting.",
        needs="read",
        read_only=True,
    ),
)  # fmt: skip

BY_NAME: Mapping[str, Operation] = {operation.name: operation for operation in OPERATIONS}

R = TypeVar("R", bound=Request)


def check(request: type[R], arguments: Mapping[str, Any]) -> R:
    """The arguments as a valid request, or an error that names the field, the bound and what was given."""
    for field, given in arguments.items():
        if isinstance(given, float) and not math.isfinite(given):
            raise InvalidInput(
                f"{field}: {given} is not a number that can be stored. {describe(request, field)}".rstrip()
            )
    try:
        value = msgspec.convert(dict(arguments), request, strict=True)
    except msgspec.ValidationError as error:
        raise InvalidInput(_teach(request, str(error))) from None
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


def _teach(request: type[Request], message: str) -> str:
    """msgspec says `Expected int >= 1 - at $.limit`; put the field first and add what the field is for."""
    problem, _, place = message.partition(" - at `$")
    field = place.rstrip("`").lstrip(".").split("[")[0]
    if not field:
        given = problem.rpartition("unknown field `")[2].rstrip("`")
        close = difflib.get_close_matches(given, request.__struct_fields__, 1)
        hint = f"Did you mean {close[0]}?" if close else f"Known fields: {', '.join(request.__struct_fields__)}."
        return f"{problem.replace('Object', 'the request')}. {hint}"
    return f"{field}: {_plainly(problem)}. {describe(request, field)}".rstrip()


def _plainly(problem: str) -> str:
    if "matching regex" in problem:
        return "letters, digits, dots, hyphens and underscores, joined by single slashes, are expected"
    if "of length >= 36" in problem or "of length <= 36" in problem:
        return "an id of 36 characters is expected, such as 0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"
    return problem.lower().replace("`", "")


def describe(request: type[Request], field: str) -> str:
    """The help text of a field, which is the same on every surface."""
    schema = json_schema(request)["properties"].get(field, {})
    inner: dict[str, Any] = next((option for option in schema.get("anyOf", ()) if "description" in option), {})
    return str(schema.get("description") or inner.get("description", ""))


@cache
def json_schema(request: Any) -> dict[str, Any]:
    """The JSON Schema of a request or result, in one document. Treat it as frozen."""
    (schema,), definitions = msgspec.json.schema_components([request], ref_template="#/$defs/{name}")
    name = getattr(request, "__name__", "")
    if schema.get("$ref") == f"#/$defs/{name}":
        schema = definitions.pop(name)
    return {**schema, "$defs": definitions} if definitions else schema
