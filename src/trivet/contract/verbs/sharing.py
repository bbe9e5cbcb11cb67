"""Verbs that link, share and sync memories, and the caller's own key."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from trivet.contract.parameters import ID_LENGTH, Content, Id, Kind, PageSize, Reveal, Tag, User
from trivet.contract.verb import Parameters, Request, Route, Tool, verb
from trivet.types import (
    EditConflict,
    Key,
    Link,
    Memory,
    Permission,
    RefusedOperation,
    Share,
    SyncStatus,
)


class LinkEnds(Parameters, frozen=True, kw_only=True):
    source: Annotated[Id, Meta(description="The subject of the link: SOURCE supersedes TARGET.")]
    kind: Kind
    target: Annotated[Id, Meta(description="The object of the link.")]


@verb(
    "link",
    "trivet.memory.lifecycle:link",
    atomic=True,
    routes=(Route("PUT", "/v1/memories/{source}/links/{kind}/{target}"),),
    tool=Tool(
        "memory_link",
        "Link memories",
        "NEW supersedes OLD: recall then serves the new one. PROBLEM resolved-by SOLUTION: recall "
        "shows the solution with it. With remove=true the link is taken away.",
    ),
)
class LinkRequest(LinkEnds, Request[Link], frozen=True, kw_only=True):
    """Link two memories: SOURCE supersedes, is resolved by, is part of, or see also TARGET."""


@verb(
    "unlink",
    "trivet.memory.lifecycle:unlink",
    atomic=True,
    routes=(Route("DELETE", "/v1/memories/{source}/links/{kind}/{target}", 204),),
)
class UnlinkRequest(LinkEnds, Request[None], frozen=True, kw_only=True):
    """Remove a link between two memories."""


@verb(
    "links",
    "trivet.memory.lifecycle:links",
    needs="read",
    routes=(Route("GET", "/v1/memories/{id}/links"),),
)
class LinksRequest(Request[tuple[Link, ...]], frozen=True, kw_only=True):
    """List the links that start or end at a memory."""

    id: Id


@verb(
    "share",
    "trivet.memory.admin.accounts:share",
    atomic=True,
    needs="share",
    routes=(Route("POST", "/v1/shares", 201),),
)
class ShareRequest(Request[Share], frozen=True, kw_only=True):
    """Let another user of the server see a memory, or all of yours with a tag."""

    user: Annotated[
        User, Meta(description="The user who may see it; * for all users of the tenant.")
    ]
    id: Annotated[Id | None, Meta(description="The memory to share; or give a tag.")] = None
    tag: Annotated[
        Tag | None,
        Meta(description="Share all your memories with this tag, present and future."),
    ] = None
    permission: Annotated[Permission, Meta(description="read, or write to allow edits too.")] = (
        "read"
    )


@verb(
    "unshare",
    "trivet.memory.admin.accounts:unshare",
    atomic=True,
    needs="share",
    routes=(Route("DELETE", "/v1/shares", 204),),
)
class UnshareRequest(Request[None], frozen=True, kw_only=True):
    """Withdraw a share; the other user loses access at once."""

    user: Annotated[
        User, Meta(description="The user who loses access; * for the share with everyone.")
    ]
    id: Annotated[Id | None, Meta(description="The shared memory; or give the tag.")] = None
    tag: Annotated[Tag | None, Meta(description="The shared tag.")] = None


@verb(
    "own_key",
    "trivet.memory.admin.accounts:own_key",
    needs="read",
    command=False,
    routes=(Route("GET", "/v1/keys/own"),),
)
class OwnKey(Request[Key], frozen=True, kw_only=True):
    """Show who owns the key in use, what it allows and when it expires."""


@verb(
    "sign_out",
    "trivet.memory.admin.accounts:sign_out",
    needs="read",  # any valid key can revoke itself
    command=False,
    routes=(Route("DELETE", "/v1/keys/own", 204),),
)
class SignOut(Request[None], frozen=True, kw_only=True):
    """Revoke the key in use at once."""


@verb(
    "shares",
    "trivet.memory.admin.accounts:shares",
    needs="read",
    routes=(Route("GET", "/v1/shares"),),
)
class SharesRequest(Request[tuple[Share, ...]], frozen=True, kw_only=True):
    """List what you share and what is shared with you."""


OperationId = Annotated[
    str, Meta(min_length=1, max_length=ID_LENGTH, description="The op from sync_refused.")
]


@verb(
    "sync_conflicts",
    "trivet.sync.conflicts:conflicts",
    needs="read",
    routes=(Route("GET", "/v1/sync/conflicts"),),
)
class SyncConflicts(Request[tuple[EditConflict, ...]], frozen=True, kw_only=True):
    """List conflicting edits: the store keeps both texts until you choose one."""

    id: Annotated[Id | None, Meta(description="Only conflicts of this memory.")] = None
    limit: PageSize = 100
    reveal: Reveal = False


@verb(
    "sync_resolve",
    "trivet.sync.conflicts:resolve",
    atomic=True,
    idempotent=False,
    routes=(Route("POST", "/v1/sync/conflicts/{id}"),),
)
class SyncResolve(Request[Memory], frozen=True, kw_only=True):
    """Settle a memory's conflicts: keep the memory, take a conflicting edit, or give a new text."""

    id: Id
    take: Annotated[
        str,
        Meta(
            min_length=1, max_length=ID_LENGTH, description="head, or the rev of the edit to take."
        ),
    ] = "head"
    content: Annotated[Content | None, Meta(description="A new text to replace both.")] = None


@verb(
    "sync_status",
    "trivet.sync.verbs:standing",
    needs="read",
    routes=(Route("GET", "/v1/sync/status"),),
    command=False,  # `trivet sync status` also asks the server
)
class SyncStatusRequest(Request[SyncStatus | None], frozen=True, kw_only=True):
    """Show how far this store is from the server it follows, without contacting the server."""


@verb(
    "sync_refused",
    "trivet.sync.conflicts:refused",
    needs="read",
    routes=(Route("GET", "/v1/sync/refused"),),
    command=False,  # `trivet sync refused` lists and drops
)
class SyncRefused(Request[tuple[RefusedOperation, ...]], frozen=True, kw_only=True):
    """List the operations that the followed server refused. They stay until you drop them."""

    reveal: Reveal = False


@verb(
    "sync_drop",
    "trivet.sync.conflicts:drop_refused",
    destructive=True,
    atomic=True,
    routes=(Route("DELETE", "/v1/sync/refused/{op}", 204),),
    command=False,
)
class SyncDrop(Request[None], frozen=True, kw_only=True):
    """Drop a refused operation and its text."""

    op: OperationId
