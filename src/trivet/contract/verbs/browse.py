"""Verbs for browsing memories, reviewing proposals, rating usefulness and counting."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from trivet.contract.parameters import (
    Action,
    Category,
    ConceptText,
    ConcernedMemory,
    Content,
    Id,
    MaxCount,
    Offset,
    OwnScope,
    PageSize,
    ProposalId,
    ProposalIds,
    Query,
    Reveal,
    SourceText,
    SourceUri,
    Tags,
    UtcOffset,
)
from trivet.contract.verb import Request, Route, Tool, verb
from trivet.contract.verbs.memories import FilterParameters, Recall
from trivet.types import (
    AuditEntry,
    ConceptKind,
    ConceptPage,
    ConceptSort,
    Count,
    Memory,
    Neighbourhood,
    Proposal,
    ProposalKind,
    ProposalPage,
    ProposalState,
    Proposed,
    Revision,
    Stats,
    Usage,
    Usefulness,
    WhyNot,
)


@verb(
    "reveal",
    "trivet.memory.sealed_secrets:reveal",
    needs="reveal",
    idempotent=False,
    secret_answer=True,
    routes=(Route("POST", "/v1/memories/{id}/reveal"),),
)
class RevealRequest(Request[Memory], frozen=True, kw_only=True):
    """Show one memory with its secrets and private parts; the audit record notes it."""

    id: Id


@verb(
    "history",
    "trivet.memory.lifecycle:history",
    needs="read",
    routes=(Route("GET", "/v1/memories/{id}/history"),),
)
class History(Request[tuple[Revision, ...]], frozen=True, kw_only=True):
    """Show every revision of a memory, oldest first."""

    id: Id
    reveal: Reveal = False


@verb(
    "why_not",
    "trivet.memory.answer.why_not:why_not",
    needs="read",
    routes=(Route("POST", "/v1/why-not"),),
    tool=Tool(
        "memory_why",
        "Why not recalled",
        "Use it when memory_recall did not return a memory you know the id of; give the same "
        "arguments and the id.",
        advanced=frozenset(Recall.__struct_fields__) - {"query", "reveal"},
        undescribed=frozenset((*Recall.__struct_fields__, "id")),
        description_from="As in memory_recall",
    ),
)
class WhyNotRequest(Recall, Request[WhyNot], frozen=True, kw_only=True):
    """Explain why a query did not return a memory, or at which rank it did."""

    id: Id


@verb(
    "concepts",
    "trivet.memory.browse:concepts",
    needs="read",
    routes=(Route("GET", "/v1/concepts"),),
    positional=("text",),
)
class ConceptsRequest(FilterParameters, Request[ConceptPage], frozen=True, kw_only=True):
    """List the concepts that memories mention, most mentioned first."""

    text: Annotated[
        ConceptText | None, Meta(description="Only concepts whose name contains this.")
    ] = None
    kind: Annotated[ConceptKind | None, Meta(description="Only concepts of this kind.")] = None
    sort: Annotated[ConceptSort, Meta(description="Order: memories (by their number) or name.")] = (
        "memories"
    )
    limit: PageSize = 50
    offset: Offset = 0


@verb("graph", "trivet.memory.browse:graph", needs="read", routes=(Route("GET", "/v1/graph"),))
class GraphRequest(FilterParameters, Request[Neighbourhood], frozen=True, kw_only=True):
    """Show what a memory or concept is connected with, and how."""

    start: Annotated[
        str,
        Meta(
            min_length=1, max_length=200, description="A memory's id, or a concept's name or alias."
        ),
    ]
    depth: Annotated[int, Meta(ge=1, le=4, description="Maximum number of steps from it.")] = 2
    limit: Annotated[
        int, Meta(ge=2, le=500, description="Maximum number of memories and concepts to return.")
    ] = 40


@verb("tags", "trivet.memory.browse:tags", needs="read", routes=(Route("GET", "/v1/tags"),))
class TagsRequest(FilterParameters, Request[tuple[Count, ...]], frozen=True, kw_only=True):
    """Count the memories of each tag, most used first."""

    limit: MaxCount = 100


@verb(
    "categories",
    "trivet.memory.browse:categories",
    needs="read",
    routes=(Route("GET", "/v1/categories"),),
)
class CategoriesRequest(FilterParameters, Request[tuple[Count, ...]], frozen=True, kw_only=True):
    """Count the memories of each category, empty categories included."""


@verb(
    "sources", "trivet.memory.browse:sources", needs="read", routes=(Route("GET", "/v1/sources"),)
)
class SourcesRequest(FilterParameters, Request[tuple[Count, ...]], frozen=True, kw_only=True):
    """Count the memories of each source (a file, conversation or address), largest first."""

    text: Annotated[
        SourceText | None, Meta(description="Only sources whose name contains this.")
    ] = None
    limit: MaxCount = 100


@verb("days", "trivet.memory.browse:days", needs="read", routes=(Route("GET", "/v1/days"),))
class DaysRequest(FilterParameters, Request[tuple[Count, ...]], frozen=True, kw_only=True):
    """Count the memories created on each day, newest day first; empty days are left out."""

    utc_offset: UtcOffset = 0
    limit: MaxCount = 366


@verb(
    "audit", "trivet.memory.sealed_secrets:audit", needs="read", routes=(Route("GET", "/v1/audit"),)
)
class AuditRequest(Request[tuple[AuditEntry, ...]], frozen=True, kw_only=True):
    """Show who did what, latest first: your own acts, or all users' if you own the store."""

    limit: MaxCount = 50


@verb("inbox_list", "trivet.memory.inbox:page", needs="read", routes=(Route("GET", "/v1/inbox"),))
class InboxList(Request[ProposalPage], frozen=True, kw_only=True):
    """List the proposals of your inbox, newest first."""

    state: Annotated[ProposalState, Meta(description="Only proposals in this state.")] = "waiting"
    limit: PageSize = 20
    offset: Offset = 0


@verb(
    "inbox_show", "trivet.memory.inbox:show", needs="read", routes=(Route("GET", "/v1/inbox/{id}"),)
)
class InboxShow(Request[Proposal], frozen=True, kw_only=True):
    """Show one proposal by its id."""

    id: ProposalId


@verb("inbox_propose", "trivet.memory.propose:propose", routes=(Route("POST", "/v1/inbox", 201),))
class InboxPropose(Request[Proposed], frozen=True, kw_only=True):
    """Propose a memory for review, unless it is already stored, waiting or rejected."""

    content: Content
    kind: Annotated[ProposalKind, Meta(description="Why it is worth keeping.")] = "told"
    reason: Annotated[
        str, Meta(max_length=300, description="Why it is proposed, for the reviewer.")
    ] = ""
    action: Action = "add"
    memory: ConcernedMemory | None = None
    category: Category = "facts"
    tags: Tags = ()
    scope: OwnScope = None
    source: SourceUri | None = None


@verb(
    "inbox_accept", "trivet.memory.inbox:accept", atomic=True, routes=(Route("POST", "/v1/accept"),)
)
class InboxAccept(Request[tuple[Proposal, ...]], frozen=True, kw_only=True):
    """Accept proposals: all of them, or none if one fails."""

    ids: ProposalIds


@verb(
    "inbox_edit",
    "trivet.memory.inbox:edit",
    atomic=True,
    routes=(Route("PATCH", "/v1/inbox/{id}"),),
)
class InboxEdit(Request[Proposal], frozen=True, kw_only=True):
    """Change a waiting proposal."""

    id: ProposalId
    content: Content | UnsetType = UNSET
    category: Category | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    action: Action | UnsetType = UNSET
    memory: ConcernedMemory | UnsetType | None = UNSET


@verb(
    "inbox_reject", "trivet.memory.inbox:reject", atomic=True, routes=(Route("POST", "/v1/reject"),)
)
class InboxReject(Request[tuple[Proposal, ...]], frozen=True, kw_only=True):
    """Reject proposals. The same text is not proposed again."""

    ids: ProposalIds


@verb(
    "inbox_reopen", "trivet.memory.inbox:reopen", atomic=True, routes=(Route("POST", "/v1/reopen"),)
)
class InboxReopen(Request[tuple[Proposal, ...]], frozen=True, kw_only=True):
    """Undo decisions on proposals: they wait again, and changes made by accepting are reverted."""

    ids: ProposalIds


@verb(
    "feedback",
    "trivet.memory.browse:feedback",
    atomic=True,
    routes=(Route("PUT", "/v1/memories/{id}/feedback"),),
    tool=Tool(
        "memory_feedback",
        "Say what helped",
        "Use it after memory_recall, with the same query: useful for what helped, not-useful for "
        "what misled.",
        undescribed=frozenset(("id",)),
    ),
)
class FeedbackRequest(Request[Usage], frozen=True, kw_only=True):
    """Rate a recalled memory as useful or not. Ratings serve tuning and do not change ranks."""

    id: Id
    verdict: Annotated[Usefulness, Meta(description="Whether it helped: useful or not-useful.")]
    query: Annotated[
        Query | None,
        Meta(description="The query that returned it; lets `trivet tune` use the rating."),
    ] = None


@verb(
    "usage",
    "trivet.memory.browse:usage",
    needs="read",
    routes=(Route("GET", "/v1/memories/{id}/usage"),),
)
class UsageRequest(Request[Usage], frozen=True, kw_only=True):
    """Show how often recall returned a memory, and how it was rated."""

    id: Id


@verb(
    "stats",
    "trivet.memory.admin.maintenance:count",
    needs="read",
    routes=(Route("GET", "/v1/stats"),),
    tool=Tool(
        "memory_stats",
        "Count memories",
        "Use it to see which scopes, categories and tags are in use.",
    ),
)
class StatsRequest(Request[Stats], frozen=True, kw_only=True):
    """Count what the store holds and the work still waiting."""
