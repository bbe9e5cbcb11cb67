"""Administration verbs: those of a server's admin, then those of the store's owner only."""

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
    "trivet.memory.admin.doctor:doctor",
    needs="admin",
    routes=(Route("GET", "/v1/doctor"),),
)
class DoctorRequest(Request[tuple[Finding, ...]], frozen=True, kw_only=True):
    """Check the store, indexes, embedder and other systems; each problem comes with its remedy."""

    quick: Annotated[
        bool | None,
        Meta(
            description="Skip reading every row, which takes seconds in a large store. By default "
            "a local store is read in full and a server's store is not."
        ),
    ] = None


@verb(
    "mend",
    "trivet.memory.admin.doctor:mend",
    needs="admin",
    routes=(Route("POST", "/v1/mend", 202),),
    command=False,  # `trivet reindex` and `trivet embed` do the same and wait
)
class MendRequest(Request[Mended], frozen=True, kw_only=True):
    """Start a repair that a doctor finding names, in the background."""

    act: Annotated[Mending, Meta(description="The repair: the finding's `mends`.")]


@verb(
    "budgets",
    "trivet.memory.admin.maintenance:budgets",
    needs="admin",
    routes=(Route("GET", "/v1/budgets"),),
    command=False,
)
class BudgetsRequest(Request[tuple[UsedBudget, ...]], frozen=True, kw_only=True):
    """Show how much memory, disk and tokens are used and allowed."""


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
    """Change a user's role; their keys allow no more than the new role from now on."""

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
    """Remove a user, their keys and what was shared with them. Their memories stay."""

    name: UserName


@verb(
    "list_keys",
    "trivet.memory.admin.accounts:keys",
    needs="read",
    routes=(Route("GET", "/v1/keys"),),
    command=False,
)
class ListKeys(Request[tuple[Key, ...]], frozen=True, kw_only=True):
    """List keys without their secrets: your own, or everyone's if you are an admin."""


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
    """Create a key, shown once: over HTTP one for yourself, or a new user's first."""

    user: UserName
    rights: Annotated[
        tuple[Right, ...],
        Meta(
            max_length=5,
            description="What it allows; by default everything the role does except reveal.",
        ),
    ] = ()
    label: Annotated[str, Meta(max_length=200, description="What it is for.")] = ""
    days: Annotated[
        Annotated[int, Meta(ge=1, le=36_500)] | None,
        Meta(description="Days until it expires; never by default."),
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
    """Revoke a key at once."""

    id: KeyId


ProgressCallback = Annotated[
    Progress | None,
    Meta(description="Called with the number of memories done since its last call."),
]


@verb(
    "rotate_keys",
    "trivet.memory.admin.maintenance:rotate_keys",
    needs="store",
    instead="Run `trivet rotate-keys` on the server's machine.",
)
class RotateKeysRequest(Request[Rotated], frozen=True, kw_only=True):
    """Seal all secrets with a new key. Old keys stay, for backups, unless you drop them."""

    drop_old: Annotated[
        bool,
        Meta(description="After sealing, remove the old keys that no store needs any more."),
    ] = False
    drop: Annotated[
        tuple[str, ...],
        Meta(description="Remove these old keys, even if other stores are recorded as using them."),
    ] = ()


@verb(
    "redact",
    "trivet.memory.admin.maintenance:redact",
    needs="store",
    instead="Run `trivet redact` on the server's machine.",
)
class RedactRequest(Request[Redacted], frozen=True, kw_only=True):
    """Remove secrets from memories and revisions that were stored while detection was off."""

    progress: ProgressCallback = None


@verb(
    "tidy",
    "trivet.memory.admin.maintenance:tidy",
    needs="store",
    instead="Run `trivet tidy` on the server's machine.",
)
class TidyRequest(Request[Tidy], frozen=True, kw_only=True):
    """Find duplicate, expired, unused, unhelpful or orphaned memories; forget them on request."""

    kinds: Annotated[tuple[TidyKind, ...], Meta(description="Only these kinds of findings.")] = ()
    dry_run: Annotated[bool, Meta(description="Only report what would be forgotten.")] = True
    unused_days: Annotated[
        int, Meta(ge=1, description="Days without a recall after which a memory is unused.")
    ] = 180
    undo: Annotated[bool, Meta(description="Restore what the last run forgot.")] = False


@verb(
    "backup",
    "trivet.memory.admin.maintenance:backup",
    needs="store",
    instead="Run `trivet backup FILE` on the server's machine, or call export().",
)
class BackupRequest(Request[None], frozen=True, kw_only=True):
    """Copy the store to a new file while other processes keep using it."""

    target: Annotated[str | PathLike[str], Meta(description="The new file.")]


@verb(
    "reindex",
    "trivet.memory.admin.maintenance:reindex",
    needs="store",
    instead="Run `trivet reindex` on the server's machine.",
)
class ReindexRequest(Request[int], frozen=True, kw_only=True):
    """Rebuild derived data from the memories; returns how many memories were embedded."""

    lexical: Annotated[bool, Meta(description="Rebuild the lexical index.")] = True
    vectors: Annotated[bool, Meta(description="Rebuild the vectors.")] = True
    graph: Annotated[bool, Meta(description="Rebuild the concept graph.")] = True
    progress: ProgressCallback = None


@verb(
    "drain",
    "trivet.memory.admin.maintenance:drain",
    needs="store",
    instead="The server embeds on its own; stats().not_embedded counts the memories still waiting.",
    command=False,
)
class DrainRequest(Request[int], frozen=True, kw_only=True):
    """Embed what is due now; returns how many memories this call embedded."""

    progress: ProgressCallback = None


@verb(
    "embed",
    "trivet.memory.admin.maintenance:embed",
    needs="store",
    instead="The server embeds on its own; to retry failures at once, run `trivet embed` there.",
)
class EmbedRequest(Request[int], frozen=True, kw_only=True):
    """Embed everything that waits, including failed memories that are due for a later retry."""

    progress: ProgressCallback = None
