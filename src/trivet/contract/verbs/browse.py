"""Looking closely at a memory, and over all of them.

Proposals that wait for a person to decide.

What was useful, and how large the store is.
"""

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
from trivet.contract.verbs.memories import Recall, Selection
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
    """Show one memory with its secrets and private parts, which is written to the audit record."""

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
        "Use it when memory_recall did not return a memory you know the id of; give the same arguments and the id.",
        rare=frozenset(Recall.__struct_fields__) - {"query", "reveal"},
        described_elsewhere=frozenset((*Recall.__struct_fields__, "id")),
        elsewhere="As in memory_recall",
    ),
)
class WhyNotRequest(Recall, Request[WhyNot], frozen=True, kw_only=True):
    """Explain why a memory did not come back for a query, or where it came."""

    id: Id


@verb(
    "concepts",
    "trivet.memory.browse:concepts",
    needs="read",
    routes=(Route("GET", "/v1/concepts"),),
    positional=("text",),
)
class ConceptsRequest(Selection, Request[ConceptPage], frozen=True, kw_only=True):
    """List the concepts that memories mention, those mentioned most first."""

    text: Annotated[
        ConceptText | None, Meta(description="Only concepts with this in their name; all if none.")
    ] = None
    kind: Annotated[ConceptKind | None, Meta(description="Only concepts of this kind.")] = None
    sort: Annotated[
        ConceptSort, Meta(description="Order: by the number of memories, or by name.")
    ] = "memories"
    limit: PageSize = 50
    offset: Offset = 0


@verb("graph", "trivet.memory.browse:graph", needs="read", routes=(Route("GET", "/v1/graph"),))
class GraphRequest(Selection, Request[Neighbourhood], frozen=True, kw_only=True):
    """Show what a memory or a concept is connected with, and how."""

    start: Annotated[
        str,
        Meta(
            min_length=1, max_length=200, description="A memory's id, or a concept in any writing."
        ),
    ]
    depth: Annotated[int, Meta(ge=1, le=4, description="How many steps to go from there.")] = 2
    limit: Annotated[
        int, Meta(ge=2, le=500, description="How many memories and concepts to show at most.")
    ] = 40


@verb("tags", "trivet.memory.browse:tags", needs="read", routes=(Route("GET", "/v1/tags"),))
class TagsRequest(Selection, Request[tuple[Count, ...]], frozen=True, kw_only=True):
    """Count the memories of each tag, the most used first."""

    limit: MaxCount = 100


@verb(
    "categories",
    "trivet.memory.browse:categories",
    needs="read",
    routes=(Route("GET", "/v1/categories"),),
)
class CategoriesRequest(Selection, Request[tuple[Count, ...]], frozen=True, kw_only=True):
    """Count the memories of each category, those without any included."""


@verb(
    "sources", "trivet.memory.browse:sources", needs="read", routes=(Route("GET", "/v1/sources"),)
)
class SourcesRequest(Selection, Request[tuple[Count, ...]], frozen=True, kw_only=True):
    """Count the memories of each source (a file, a conversation, an address), those with most first."""

    text: Annotated[
        SourceText | None, Meta(description="Only sources with this in their name; all if none.")
    ] = None
    limit: MaxCount = 100


@verb("days", "trivet.memory.browse:days", needs="read", routes=(Route("GET", "/v1/days"),))
class DaysRequest(Selection, Request[tuple[Count, ...]], frozen=True, kw_only=True):
    """Count the memories created on each day that has any, the newest day first."""

    utc_offset: UtcOffset = 0
    limit: MaxCount = 366


@verb(
    "audit", "trivet.memory.sealed_secrets:audit", needs="read", routes=(Route("GET", "/v1/audit"),)
)
class AuditRequest(Request[tuple[AuditEntry, ...]], frozen=True, kw_only=True):
    """Show who did what, the latest first: your own acts, or everybody's if you have the store."""

    limit: MaxCount = 50


@verb("inbox_list", "trivet.memory.inbox:page", needs="read", routes=(Route("GET", "/v1/inbox"),))
class InboxList(Request[ProposalPage], frozen=True, kw_only=True):
    """List the proposals of your inbox, newest first."""

    state: Annotated[
        ProposalState, Meta(description="Those that wait, or those accepted or rejected.")
    ] = "waiting"
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
    """Propose a memory for review. What is stored, waits or was rejected already is not proposed again."""

    content: Content
    kind: Annotated[ProposalKind, Meta(description="What makes it worth keeping.")] = "told"
    reason: Annotated[
        str, Meta(max_length=300, description="Why it is proposed, for whoever reviews it.")
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
    """Accept proposals: all of them are stored, or at the first error none."""

    ids: ProposalIds


@verb(
    "inbox_edit",
    "trivet.memory.inbox:edit",
    atomic=True,
    routes=(Route("PATCH", "/v1/inbox/{id}"),),
)
class InboxEdit(Request[Proposal], frozen=True, kw_only=True):
    """Change a waiting proposal before it is accepted."""

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
    """Reject proposals. What they say is not proposed again."""

    ids: ProposalIds


@verb(
    "inbox_reopen", "trivet.memory.inbox:reopen", atomic=True, routes=(Route("POST", "/v1/reopen"),)
)
class InboxReopen(Request[tuple[Proposal, ...]], frozen=True, kw_only=True):
    """Take decisions on proposals back: they wait again, and what accepting them changed is undone."""

    ids: ProposalIds


@verb(
    "feedback",
    "trivet.memory.browse:feedback",
    atomic=True,
    routes=(Route("PUT", "/v1/memories/{id}/feedback"),),
    tool=Tool(
        "memory_feedback",
        "Say what helped",
        "Use it after memory_recall, with the same query: useful for what helped, not-useful for what misled.",
        described_elsewhere=frozenset(("id",)),
    ),
)
class FeedbackRequest(Request[Usage], frozen=True, kw_only=True):
    """Say whether a memory that came was useful. It is kept for tuning and changes no rank."""

    id: Id
    verdict: Annotated[Usefulness, Meta(description="Whether it helped: useful or not-useful.")]
    query: Annotated[
        Query | None,
        Meta(description="What was asked when it came; then `trivet tune` can use it."),
    ] = None


@verb(
    "usage",
    "trivet.memory.browse:usage",
    needs="read",
    routes=(Route("GET", "/v1/memories/{id}/usage"),),
)
class UsageRequest(Request[Usage], frozen=True, kw_only=True):
    """Show how often recall showed a memory, and what was said of it."""

    id: Id


@verb(
    "stats",
    "trivet.memory.admin.upkeep:count",
    needs="read",
    routes=(Route("GET", "/v1/stats"),),
    tool=Tool(
        "memory_stats",
        "Count memories",
        "Use it to see which scopes, categories and tags are in use.",
    ),
)
class StatsRequest(Request[Stats], frozen=True, kw_only=True):
    """Count what the store holds and the work waiting."""
