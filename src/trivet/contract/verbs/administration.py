"""What an admin of a server asks for their tenant, over HTTP; the owner of a store asks the same of it.

What only the owner can ask, who has the store itself. The command line has options of its own for these.
"""

from __future__ import annotations

from os import PathLike
from typing import Annotated

from msgspec import Meta

from trivet.contract.parameters import KeyId, UserName
from trivet.contract.verb import Request, Route, verb
from trivet.types import Budget as UsedBudget
from trivet.types import (
    Finding,
    Key,
    Mended,
    Mending,
    NewKey,
    Progress,
    Redacted,
    Right,
    Role,
    Rotated,
    Tidy,
    TidyKind,
)
from trivet.types import User as UserOfServer


@verb(
    "doctor",
    "trivet.memory.admin.upkeep:doctor",
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
    "trivet.memory.admin.upkeep:mend",
    needs="admin",
    routes=(Route("POST", "/v1/mend", 202),),
    command=False,  # `trivet reindex` and `trivet embed` do the same, and wait for it
)
class MendRequest(Request[Mended], frozen=True, kw_only=True):
    """Mend what doctor found, in the background: an act that one of its findings names."""

    act: Annotated[Mending, Meta(description="What to do, as the finding's `mends` says.")]


@verb(
    "budgets",
    "trivet.memory.admin.upkeep:budgets",
    needs="admin",
    routes=(Route("GET", "/v1/budgets"),),
    command=False,
)
class BudgetsRequest(Request[tuple[UsedBudget, ...]], frozen=True, kw_only=True):
    """How much memory, disk and tokens are used, and how much is allowed."""


@verb(
    "list_users",
    "trivet.memory.admin.accounts:users",
    needs="admin",
    routes=(Route("GET", "/v1/users"),),
    command=False,
)
class ListUsers(Request[tuple[UserOfServer, ...]], frozen=True, kw_only=True):
    """List the users of the server's tenant."""


@verb(
    "add_user",
    "trivet.memory.admin.accounts:add_user",
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
    "trivet.memory.admin.accounts:set_role",
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
    "trivet.memory.admin.accounts:remove_user",
    needs="admin",
    destructive=True,
    atomic=True,
    routes=(Route("DELETE", "/v1/users/{name}", 204),),
    command=False,
)
class RemoveUser(Request[None], frozen=True, kw_only=True):
    """Remove a user, with all their keys and what was shared with them. Their memories stay."""

    name: UserName


@verb(
    "list_keys",
    "trivet.memory.admin.accounts:keys",
    needs="read",
    routes=(Route("GET", "/v1/keys"),),
    command=False,
)
class ListKeys(Request[tuple[Key, ...]], frozen=True, kw_only=True):
    """List keys, never their secrets: your own, or everybody's for an admin."""


@verb(
    "add_key",
    "trivet.memory.admin.accounts:add_key",
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
        Meta(
            max_length=5,
            description="What it allows; if none, what the role does, except to reveal.",
        ),
    ] = ()
    label: Annotated[str, Meta(max_length=200, description="What it is for.")] = ""
    days: Annotated[
        Annotated[int, Meta(ge=1, le=36_500)] | None,
        Meta(description="After how many days it expires; never if none."),
    ] = None


@verb(
    "revoke_key",
    "trivet.memory.admin.accounts:revoke_key",
    needs="admin",
    destructive=True,
    atomic=True,
    routes=(Route("DELETE", "/v1/keys/{id}", 204),),
    command=False,
)
class RevokeKey(Request[None], frozen=True, kw_only=True):
    """Make a key void at once."""

    id: KeyId


ProgressCallback = Annotated[
    Progress | None,
    Meta(description="Called with the number of memories done since the last call."),
]


@verb(
    "rotate_keys",
    "trivet.memory.admin.upkeep:rotate_keys",
    needs="store",
    instead="Run `trivet rotate-keys` on the server's machine.",
)
class RotateKeysRequest(Request[Rotated], frozen=True, kw_only=True):
    """Seal every secret of this store with a new key. The old ones stay, for backups, unless they are dropped."""

    drop_old: Annotated[
        bool,
        Meta(
            description="Remove the old keys that no store needs any longer, when everything is sealed anew."
        ),
    ] = False
    drop: Annotated[
        tuple[str, ...],
        Meta(description="Remove these old keys, even if other stores were noted to use them."),
    ] = ()


@verb(
    "redact",
    "trivet.memory.admin.upkeep:redact",
    needs="store",
    instead="Run `trivet redact` on the server's machine.",
)
class RedactRequest(Request[Redacted], frozen=True, kw_only=True):
    """Take secrets out of memories and revisions that were stored while nothing looked for them."""

    progress: ProgressCallback = None


@verb(
    "tidy",
    "trivet.memory.admin.upkeep:tidy",
    needs="store",
    instead="Run `trivet tidy` on the server's machine.",
)
class TidyRequest(Request[Tidy], frozen=True, kw_only=True):
    """Find duplicates, what has expired, was never recalled or useful, or lost its file; forget it if wanted."""

    kinds: Annotated[tuple[TidyKind, ...], Meta(description="Only these kinds of findings.")] = ()
    dry_run: Annotated[bool, Meta(description="Only say what would be forgotten.")] = True
    unused_days: Annotated[
        int, Meta(ge=1, description="Unused is what was not recalled in so many days.")
    ] = 180
    undo: Annotated[bool, Meta(description="Bring back what the last run forgot.")] = False


@verb(
    "backup",
    "trivet.memory.admin.upkeep:backup",
    needs="store",
    instead="Run `trivet backup FILE` on the server's machine, or take an export(), which travels.",
)
class BackupRequest(Request[None], frozen=True, kw_only=True):
    """Copy the store to a new file while others go on using it."""

    target: Annotated[str | PathLike[str], Meta(description="The new file.")]


@verb(
    "reindex",
    "trivet.memory.admin.upkeep:reindex",
    needs="store",
    instead="Run `trivet reindex` on the server's machine.",
)
class ReindexRequest(Request[int], frozen=True, kw_only=True):
    """Rebuild derived data from the memories and return how many memories were embedded."""

    lexical: Annotated[bool, Meta(description="The lexical index.")] = True
    vectors: Annotated[bool, Meta(description="The vectors.")] = True
    graph: Annotated[bool, Meta(description="The concept graph.")] = True
    progress: ProgressCallback = None


@verb(
    "drain",
    "trivet.memory.admin.upkeep:drain",
    needs="store",
    instead="The server embeds by itself; stats().not_embedded tells how many memories still wait.",
    command=False,
)
class DrainRequest(Request[int], frozen=True, kw_only=True):
    """Embed what is due, unless a background worker has done it; returns how many memories this call embedded."""

    progress: ProgressCallback = None


@verb(
    "embed",
    "trivet.memory.admin.upkeep:embed",
    needs="store",
    instead="The server embeds by itself; to try again at once what failed, run `trivet embed` on its machine.",
)
class EmbedRequest(Request[int], frozen=True, kw_only=True):
    """Embed everything that waits, also what failed before and would be retried later."""

    progress: ProgressCallback = None
