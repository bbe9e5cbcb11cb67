"""Proposals that wait for a person to decide.

What was useful, and how large the store is.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from trivet.contract.fields import (
    Action,
    Category,
    ConcernedMemory,
    Content,
    Id,
    Offset,
    OwnScope,
    PageSize,
    ProposalId,
    ProposalIds,
    Query,
    SourceUri,
    Tags,
)
from trivet.contract.verb import Request, Route, Tool, verb
from trivet.types import Proposal, ProposalKind, ProposalPage, ProposalState, Proposed, Stats, Usage, Usefulness


@verb("inbox_list", "trivet.memory.inbox:page", needs="read", routes=(Route("GET", "/v1/inbox"),))
class InboxList(Request[ProposalPage], frozen=True, kw_only=True):
    """List the proposals of your inbox, newest first."""

    state: Annotated[ProposalState, Meta(description="Those that wait, or those accepted or rejected.")] = "waiting"
    limit: PageSize = 20
    offset: Offset = 0


@verb("inbox_show", "trivet.memory.inbox:show", needs="read", routes=(Route("GET", "/v1/inbox/{id}"),))
class InboxShow(Request[Proposal], frozen=True, kw_only=True):
    """Show one proposal by its id."""

    id: ProposalId


@verb("inbox_propose", "trivet.memory.inbox:propose", routes=(Route("POST", "/v1/inbox", 201),))
class InboxPropose(Request[Proposed], frozen=True, kw_only=True):
    """Propose a memory for review. What is stored, waits or was rejected already is not proposed again."""

    content: Content
    kind: Annotated[ProposalKind, Meta(description="What makes it worth keeping.")] = "told"
    reason: Annotated[str, Meta(max_length=300, description="Why it is proposed, for whoever reviews it.")] = ""
    action: Action = "add"
    memory: ConcernedMemory | None = None
    category: Category = "facts"
    tags: Tags = ()
    scope: OwnScope = None
    source: SourceUri | None = None


@verb("inbox_accept", "trivet.memory.inbox:accept", atomic=True, routes=(Route("POST", "/v1/accept"),))
class InboxAccept(Request[tuple[Proposal, ...]], frozen=True, kw_only=True):
    """Accept proposals: all of them are stored, or at the first error none."""

    ids: ProposalIds


@verb("inbox_edit", "trivet.memory.inbox:edit", atomic=True, routes=(Route("PATCH", "/v1/inbox/{id}"),))
class InboxEdit(Request[Proposal], frozen=True, kw_only=True):
    """Change a waiting proposal before it is accepted."""

    id: ProposalId
    content: Content | UnsetType = UNSET
    category: Category | UnsetType = UNSET
    tags: Tags | UnsetType = UNSET
    action: Action | UnsetType = UNSET
    memory: ConcernedMemory | UnsetType | None = UNSET


@verb("inbox_reject", "trivet.memory.inbox:reject", atomic=True, routes=(Route("POST", "/v1/reject"),))
class InboxReject(Request[tuple[Proposal, ...]], frozen=True, kw_only=True):
    """Reject proposals. What they say is not proposed again."""

    ids: ProposalIds


@verb("inbox_reopen", "trivet.memory.inbox:reopen", atomic=True, routes=(Route("POST", "/v1/reopen"),))
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
    query: Annotated[Query | None, Meta(description="What was asked when it came; then `trivet tune` can use it.")] = (
        None
    )


@verb("usage", "trivet.memory.browse:usage", needs="read", routes=(Route("GET", "/v1/memories/{id}/usage"),))
class UsageRequest(Request[Usage], frozen=True, kw_only=True):
    """Show how often recall showed a memory, and what was said of it."""

    id: Id


@verb(
    "stats",
    "trivet.memory.admin.upkeep:count",
    needs="read",
    routes=(Route("GET", "/v1/stats"),),
    tool=Tool("memory_stats", "Count memories", "Use it to see which scopes, categories and tags are in use."),
)
class StatsRequest(Request[Stats], frozen=True, kw_only=True):
    """Count what the store holds and the work waiting."""
