"""Proposals that wait for a person to decide."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from trivet.contract.fields import (
    Action,
    Category,
    Concerned,
    Content,
    HowMany,
    OwnScope,
    ProposalId,
    ProposalIds,
    Skipped,
    SourceUri,
    Tags,
)
from trivet.contract.verb import Request, Route, verb
from trivet.types import Proposal, ProposalKind, ProposalPage, ProposalState, Proposed


@verb("inbox_list", "trivet.memory.inbox.browse:page", needs="read", routes=(Route("GET", "/v1/inbox"),))
class InboxList(Request[ProposalPage], frozen=True, kw_only=True):
    """List the proposals of your inbox, newest first."""

    state: Annotated[ProposalState, Meta(description="Those that wait, or those accepted or rejected.")] = "waiting"
    limit: HowMany = 20
    offset: Skipped = 0


@verb("inbox_show", "trivet.memory.inbox.browse:show", needs="read", routes=(Route("GET", "/v1/inbox/{id}"),))
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
    memory: Concerned | None = None
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
    memory: Concerned | UnsetType | None = UNSET


@verb("inbox_reject", "trivet.memory.inbox:reject", atomic=True, routes=(Route("POST", "/v1/reject"),))
class InboxReject(Request[tuple[Proposal, ...]], frozen=True, kw_only=True):
    """Reject proposals. What they say is not proposed again."""

    ids: ProposalIds


@verb("inbox_reopen", "trivet.memory.inbox:reopen", atomic=True, routes=(Route("POST", "/v1/reopen"),))
class InboxReopen(Request[tuple[Proposal, ...]], frozen=True, kw_only=True):
    """Take decisions on proposals back: they wait again, and what accepting them changed is undone."""

    ids: ProposalIds
