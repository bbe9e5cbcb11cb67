"""Values of administration: statistics, health, users, keys, budgets, sync."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from trivet.types.memories import Value

Permission = Literal["read", "write"]


Role = Literal["reader", "writer", "admin"]


# The rights of a server's key. `reveal` shows secrets and sensitive contents; `admin` also sees the
# audit record of all users.
Right = Literal["read", "write", "share", "reveal", "admin"]


TidyKind = Literal["duplicate", "expired", "unused", "unhelpful", "orphan"]


# The repairs of `mend`, spelled as on the command line.
Mending = Literal["reindex lexical", "reindex vectors", "reindex graph", "embed"]


class Stats(Value, frozen=True, kw_only=True):
    """Counts of a store's contents and of the work still waiting."""

    path: str
    memories: Mapping[str, int]
    categories: Mapping[str, int]
    scopes: Mapping[str, int]
    tags: Mapping[str, int]
    links: int
    revisions: int
    sensitive: int
    passages: int
    not_embedded: int
    failing_jobs: int
    last_error: str | None = None
    concepts: int = 0
    mentions: int = 0
    statements: int = 0
    not_in_graph: int = 0
    read_in_part: int = 0  # memories that took too long to read for the graph, in this process
    mending: Mending | None = None  # the repair that runs now, in the process that answers
    embedder: str | None
    schema: int
    bytes: int | None
    notes: tuple[str, ...] = ()


class Caller(Value, frozen=True, kw_only=True):
    """The caller of a server: a user of a tenant, and the rights of the key in use."""

    tenant: str
    user: str
    role: Role
    key: str
    rights: frozenset[Right]


class User(Value, frozen=True, kw_only=True):
    name: str
    role: Role
    created_at: datetime


class Key(Value, frozen=True, kw_only=True):
    """An API key without its secret, which is shown once at creation and stored only as a hash."""

    id: str
    user: str
    rights: tuple[Right, ...]
    label: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


class NewKey(Key, frozen=True, kw_only=True):
    """A new API key. `key` is its secret text, shown only this once."""

    key: str


class Share(Value, frozen=True, kw_only=True):
    """A memory, or all memories of an owner with a tag, shared with a user or (*) everyone."""

    owner: str
    id: str | None = None
    tag: str | None = None
    user: str
    permission: Permission
    created_at: datetime


class SyncStatus(Value, frozen=True, kw_only=True):
    """How far a store is from the server it follows.

    `contact` is when the server last answered. `level`: both hold the same; None if the server was
    not asked or could not be, as `trouble` explains.
    """

    server: str
    user: str
    contact: str | None
    outbox: int
    oldest: str | None
    refused: int
    conflicts: int
    stays_local: int
    why_local: str
    hidden: bool
    full_pull: bool
    scopes: tuple[str, ...] = ()
    level: bool | None = None
    trouble: str | None = None


class EditConflict(Value, frozen=True, kw_only=True):
    """An edit that conflicts with a memory: the differing fields of both, and the author.

    `name` is the memory's title or first words; `diff` leads from the memory to the edit. `masked`:
    one is sensitive, so both texts are left out.
    """

    id: str
    name: str
    rev: str
    author: str
    at: str
    head: Mapping[str, Any]
    branch: Mapping[str, Any]
    diff: str
    masked: bool = False


class RefusedOperation(Value, frozen=True, kw_only=True):
    """An operation that the followed server refused, with the reason.

    `name` is the memory's title or first words, None if it no longer exists here; `said` is the
    refused content. `masked`: the text is or was sensitive and is left out.
    """

    op: str
    kind: str
    id: str
    name: str | None = None
    at: str
    reason: str
    said: Mapping[str, Any]
    masked: bool = False


class Budget(Value, frozen=True, kw_only=True):
    """The use of a limited resource; `allowed` is None if no limit is set."""

    name: str
    unit: Literal["MB", "tokens today"]
    used: float
    allowed: float | None = None
    setting: str

    @property
    def exceeded(self) -> bool:
        return self.allowed is not None and self.used > self.allowed


class Tidied(Value, frozen=True, kw_only=True):
    """A memory that a tidy forgot (or would forget), and why. `act`: forget it, or look at it."""

    kind: TidyKind
    id: str
    reason: str
    act: Literal["forget", "look"]
    content: str


class Tidy(Value, frozen=True, kw_only=True):
    """The result of a tidy. `run` is the id for undoing it; None if nothing was forgotten."""

    findings: tuple[Tidied, ...]
    forgotten: int = 0
    dry_run: bool = True
    run: str | None = None
    notes: tuple[str, ...] = ()


class Count(Value, frozen=True, kw_only=True):
    """The number of visible memories with a tag, category or source, or created on a day."""

    name: str
    memories: int


class AuditEntry(Value, frozen=True, kw_only=True):
    """One action: what was done when, by whom, to which memory. Never holds a secret."""

    at: datetime
    actor: str | None
    act: str
    memory: str | None
    detail: str


class Redacted(Value, frozen=True, kw_only=True):
    """What redacting stored memories removed: affected memories, and secrets by kind.

    `pending` says where old texts still have to be erased.
    """

    memories: int
    secrets: Mapping[str, int]
    pending: str | None = None


class Purged(Value, frozen=True, kw_only=True):
    """An erased memory; `pending` says where its text still has to be erased."""

    id: str
    pending: str | None = None


class Rotated(Value, frozen=True, kw_only=True):
    """The result of a key rotation. `resumed`: it continued an unfinished one.

    `kept` lists keys that could not be dropped, each with the stores that may need it.
    """

    key: str
    resealed: int
    dropped: int = 0
    resumed: bool = False
    kept: Mapping[str, tuple[str, ...]] = {}


class Finding(Value, frozen=True, kw_only=True):
    """One check of `doctor`; `mends` is the argument of `mend` that fixes a problem."""

    check: str
    ok: bool
    detail: str
    remedy: str | None = None
    matters: str | None = None
    mends: Mending | None = None


class Mended(Value, frozen=True, kw_only=True):
    """A repair that `mend` started or found running. `stats` shows when it is done."""

    act: Mending
    status: Literal["started", "under way already"]
