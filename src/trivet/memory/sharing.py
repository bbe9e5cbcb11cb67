"""Showing memories to other users of a server: one of them, or all with a tag, now and later."""

from __future__ import annotations

from trivet.contract import ShareRequest, SharesRequest, UnshareRequest
from trivet.errors import InvalidInput, NotFound
from trivet.ids import check_id
from trivet.memory.engine import Engine
from trivet.types import LOCAL, Share

EVERYONE = "*"


def share(engine: Engine, request: ShareRequest) -> Share:
    _check_one(request)
    if request.user == (engine.viewer or LOCAL):
        raise InvalidInput("user: what is yours needs no share with yourself. Name another user.")
    # A laptop does not know the users; the server it follows refuses one that is not there.
    if request.user != EVERYONE and not engine.follows and not engine.store.accounts.has(request.user):
        raise NotFound(f"There is no user {request.user} here to share with. Nothing was changed.")
    if request.tag is not None and engine.guard.spans(request.tag):
        raise InvalidInput("tag: it looks like a secret, and what is shared is on the record. Nothing was shared.")
    if request.id is not None:
        return engine.store.shares.share_memory(check_id(request.id), request.user, request.permission)
    return engine.store.shares.share_tag(str(request.tag), request.user, request.permission)


def unshare(engine: Engine, request: UnshareRequest) -> None:
    _check_one(request)
    if request.id is not None:
        engine.store.shares.unshare_memory(check_id(request.id), request.user)
    else:
        engine.store.shares.unshare_tag(str(request.tag), request.user)


def shares(engine: Engine, request: SharesRequest) -> tuple[Share, ...]:
    return engine.store.shares.all()


def _check_one(request: ShareRequest | UnshareRequest) -> None:
    if (request.id is None) == (request.tag is None):
        raise InvalidInput("Give either the id of a memory or a tag, not both and not neither.")
