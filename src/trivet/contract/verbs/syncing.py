"""Edits that clashed, and how a store that follows a server stands: what waits for somebody to decide."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from trivet.contract.fields import ID_LENGTH, Content, HowMany, Id, Reveal
from trivet.contract.verb import Request, Route, verb
from trivet.types import EditConflict, Memory, RefusedOperation, SyncStatus

OperationId = Annotated[str, Meta(min_length=1, max_length=ID_LENGTH, description="As sync_refused names it.")]


@verb(
    "sync_conflicts",
    "trivet.sync.conflicts:conflicts",
    needs="read",
    routes=(Route("GET", "/v1/sync/conflicts"),),
)
class SyncConflicts(Request[tuple[EditConflict, ...]], frozen=True, kw_only=True):
    """List edits that clashed: both texts are kept until one is chosen."""

    id: Annotated[Id | None, Meta(description="Of this memory alone.")] = None
    limit: HowMany = 100
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
        str, Meta(min_length=1, max_length=ID_LENGTH, description="head, or the rev of the edit to take.")
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
    "trivet.sync.refused:refused",
    needs="read",
    routes=(Route("GET", "/v1/sync/refused"),),
    command=False,  # `trivet sync refused` lists and drops
)
class SyncRefused(Request[tuple[RefusedOperation, ...]], frozen=True, kw_only=True):
    """List what the server that this store follows refused. Nothing of it is ever dropped by itself."""

    reveal: Reveal = False


@verb(
    "sync_drop",
    "trivet.sync.refused:drop_refused",
    destructive=True,
    atomic=True,
    routes=(Route("DELETE", "/v1/sync/refused/{op}", 204),),
    command=False,
)
class SyncDrop(Request[None], frozen=True, kw_only=True):
    """Let go of an operation that the server refused, with its words."""

    op: OperationId
