"""What an admin of a server asks for their tenant, over HTTP; the owner of a store asks the same of it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from trivet.contract.fields import KeyId, UserName
from trivet.contract.verb import Request, Route, verb
from trivet.types import Budget as UsedBudget
from trivet.types import Finding, Key, Mended, Mending, NewKey, Right, Role
from trivet.types import User as UserOfServer


@verb(
    "doctor",
    "trivet.memory.owner:doctor",
    needs="admin",
    routes=(Route("GET", "/v1/doctor"),),
)
class DoctorRequest(Request[tuple[Finding, ...]], frozen=True, kw_only=True):
    """Check the store, its indexes, the embedder and the other systems; each problem comes with its remedy."""

    quick: Annotated[
        bool | None,
        Meta(
            description="Leave out reading every row, which takes seconds in a large store. If none, a store of your "
            "own is read whole, and a server's is not."
        ),
    ] = None


@verb(
    "mend",
    "trivet.memory.mending:mend",
    needs="admin",
    routes=(Route("POST", "/v1/mend", 202),),
    command=False,  # `trivet reindex` and `trivet embed` do the same, and wait for it
)
class MendRequest(Request[Mended], frozen=True, kw_only=True):
    """Mend what doctor found, in the background: an act that one of its findings names."""

    act: Annotated[Mending, Meta(description="What to do, as the finding's `mends` says.")]


@verb("budgets", "trivet.memory.owner:budgets", needs="admin", routes=(Route("GET", "/v1/budgets"),), command=False)
class BudgetsRequest(Request[tuple[UsedBudget, ...]], frozen=True, kw_only=True):
    """How much memory, disk and tokens are used, and how much is allowed."""


@verb("list_users", "trivet.memory.people:users", needs="admin", routes=(Route("GET", "/v1/users"),), command=False)
class ListUsers(Request[tuple[UserOfServer, ...]], frozen=True, kw_only=True):
    """List the users of the server's tenant."""


@verb(
    "add_user",
    "trivet.memory.people:add_user",
    needs="admin",
    idempotent=False,
    atomic=True,
    routes=(Route("POST", "/v1/users", 201),),
    command=False,
)
class AddUser(Request[UserOfServer], frozen=True, kw_only=True):
    """Add a user of the server."""

    name: UserName
    role: Annotated[Role, Meta(description="reader, writer or admin.")] = "writer"


@verb(
    "set_role",
    "trivet.memory.people:set_role",
    needs="admin",
    atomic=True,
    routes=(Route("PUT", "/v1/users/{name}/role"),),
    command=False,
)
class SetRole(Request[UserOfServer], frozen=True, kw_only=True):
    """Give a user another role; their keys allow no more than it from now on."""

    name: UserName
    role: Annotated[Role, Meta(description="reader, writer or admin.")]


@verb(
    "remove_user",
    "trivet.memory.people:remove_user",
    needs="admin",
    destructive=True,
    atomic=True,
    routes=(Route("DELETE", "/v1/users/{name}", 204),),
    command=False,
)
class RemoveUser(Request[None], frozen=True, kw_only=True):
    """Remove a user, with all their keys and what was shared with them. Their memories stay."""

    name: UserName


@verb("list_keys", "trivet.memory.people:keys", needs="read", routes=(Route("GET", "/v1/keys"),), command=False)
class ListKeys(Request[tuple[Key, ...]], frozen=True, kw_only=True):
    """List keys, never their secrets: your own, or everybody's for an admin."""


@verb(
    "add_key",
    "trivet.memory.people:add_key",
    needs="admin",
    idempotent=False,
    secret_answer=True,
    routes=(Route("POST", "/v1/keys", 201),),
    command=False,
)
class AddKey(Request[NewKey], frozen=True, kw_only=True):
    """Make a key, which is shown once: over HTTP one for yourself, or the first of a user who is new."""

    user: UserName
    rights: Annotated[
        tuple[Right, ...],
        Meta(max_length=5, description="What it allows; if none, what the role does, except to reveal."),
    ] = ()
    label: Annotated[str, Meta(max_length=200, description="What it is for.")] = ""
    days: Annotated[
        Annotated[int, Meta(ge=1, le=36_500)] | None, Meta(description="After how many days it expires; never if none.")
    ] = None


@verb(
    "revoke_key",
    "trivet.memory.people:revoke_key",
    needs="admin",
    destructive=True,
    atomic=True,
    routes=(Route("DELETE", "/v1/keys/{id}", 204),),
    command=False,
)
class RevokeKey(Request[None], frozen=True, kw_only=True):
    """Make a key void at once."""

    id: KeyId
