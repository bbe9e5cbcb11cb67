"""Who else sees a memory, and the key that one came with.

Edits that clashed, and how a store that follows a server stands: what waits for somebody to decide.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from trivet.contract.parameters import ID_LENGTH, Content, Id, PageSize, Reveal, Tag, User
from trivet.contract.verb import Request, Route, verb
from trivet.types import EditConflict, Key, Memory, Permission, RefusedOperation, Share, SyncStatus


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
        User, Meta(description="Who may see it; * for every user of this server's tenant.")
    ]
    id: Annotated[Id | None, Meta(description="The memory to share; or name a tag.")] = None
    tag: Annotated[
        Tag | None,
        Meta(description="Share every memory of yours that carries this tag, now or later."),
    ] = None
    permission: Annotated[Permission, Meta(description="read, or write, which includes edits.")] = (
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
    """Take back what was shared; it is out of the other's sight at once."""

    user: Annotated[
        User, Meta(description="Who shall not see it any longer; * for the share with everyone.")
    ]
    id: Annotated[Id | None, Meta(description="The memory that was shared; or name the tag.")] = (
        None
    )
    tag: Annotated[Tag | None, Meta(description="The tag that was shared.")] = None


@verb(
    "own_key",
    "trivet.memory.admin.accounts:own_key",
    needs="read",
    command=False,
    routes=(Route("GET", "/v1/keys/own"),),
)
class OwnKey(Request[Key], frozen=True, kw_only=True):
    """Say whose key this is, what it allows and when it ends."""


@verb(
    "sign_out",
    "trivet.memory.admin.accounts:sign_out",
    needs="read",  # whoever can use a key can give it back
    command=False,
    routes=(Route("DELETE", "/v1/keys/own", 204),),
)
class SignOut(Request[None], frozen=True, kw_only=True):
    """Make the key that this is asked with void at once."""


@verb(
    "shares",
    "trivet.memory.admin.accounts:shares",
    needs="read",
    routes=(Route("GET", "/v1/shares"),),
)
class SharesRequest(Request[tuple[Share, ...]], frozen=True, kw_only=True):
    """List what you share and what is shared with you."""


OperationId = Annotated[
    str, Meta(min_length=1, max_length=ID_LENGTH, description="As sync_refused names it.")
]


@verb(
    "sync_conflicts",
    "trivet.sync.conflicts:conflicts",
    needs="read",
    routes=(Route("GET", "/v1/sync/conflicts"),),
)
class SyncConflicts(Request[tuple[EditConflict, ...]], frozen=True, kw_only=True):
    """List edits that clashed: both texts are kept until one is chosen."""

    id: Annotated[Id | None, Meta(description="Of this memory alone.")] = None
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
    """Settle the conflicts of a memory: keep it as it is, take an edit that clashed, or give another text."""

    id: Id
    take: Annotated[
        str,
        Meta(
            min_length=1, max_length=ID_LENGTH, description="head, or the rev of the edit to take."
        ),
    ] = "head"
    content: Annotated[Content | None, Meta(description="Another text instead of both.")] = None


@verb(
    "sync_status",
    "trivet.sync.verbs:standing",
    needs="read",
    routes=(Route("GET", "/v1/sync/status"),),
    command=False,  # `trivet sync status` also asks the server
)
class SyncStatusRequest(Request[SyncStatus | None], frozen=True, kw_only=True):
    """Say how this store stands with the server it follows, without asking it; nothing if it follows none."""


@verb(
    "sync_refused",
    "trivet.sync.conflicts:refused",
    needs="read",
    routes=(Route("GET", "/v1/sync/refused"),),
    command=False,  # `trivet sync refused` lists and drops
)
class SyncRefused(Request[tuple[RefusedOperation, ...]], frozen=True, kw_only=True):
    """List what the server that this store follows refused. Nothing of it is ever dropped by itself."""

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
    """Let go of an operation that the server refused, with its words."""

    op: OperationId
