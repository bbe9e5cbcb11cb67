"""Who else sees a memory, and the key that one came with."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from trivet.contract.fields import Id, Tag, User
from trivet.contract.verb import Request, Route, verb
from trivet.types import Key, Permission, Share


@verb("share", "trivet.memory.sharing:share", atomic=True, needs="share", routes=(Route("POST", "/v1/shares", 201),))
class ShareRequest(Request[Share], frozen=True, kw_only=True):
    """Let another user of the server see a memory, or all of yours with a tag."""

    user: Annotated[User, Meta(description="Who may see it; * for every user of this server's tenant.")]
    id: Annotated[Id | None, Meta(description="The memory to share; or name a tag.")] = None
    tag: Annotated[Tag | None, Meta(description="Share every memory of yours that carries this tag, now or later.")] = (
        None
    )
    permission: Annotated[Permission, Meta(description="read, or write, which includes edits.")] = "read"


@verb(
    "unshare", "trivet.memory.sharing:unshare", atomic=True, needs="share", routes=(Route("DELETE", "/v1/shares", 204),)
)
class UnshareRequest(Request[None], frozen=True, kw_only=True):
    """Take back what was shared; it is out of the other's sight at once."""

    user: Annotated[User, Meta(description="Who shall not see it any longer; * for the share with everyone.")]
    id: Annotated[Id | None, Meta(description="The memory that was shared; or name the tag.")] = None
    tag: Annotated[Tag | None, Meta(description="The tag that was shared.")] = None


@verb("own_key", "trivet.memory.own_key:own_key", needs="read", command=False, routes=(Route("GET", "/v1/keys/own"),))
class OwnKey(Request[Key], frozen=True, kw_only=True):
    """Say whose key this is, what it allows and when it ends."""


@verb(
    "sign_out",
    "trivet.memory.own_key:sign_out",
    needs="read",  # whoever can use a key can give it back
    command=False,
    routes=(Route("DELETE", "/v1/keys/own", 204),),
)
class SignOut(Request[None], frozen=True, kw_only=True):
    """Make the key that this is asked with void at once."""


@verb("shares", "trivet.memory.sharing:shares", needs="read", routes=(Route("GET", "/v1/shares"),))
class SharesRequest(Request[tuple[Share, ...]], frozen=True, kw_only=True):
    """List what you share and what is shared with you."""
