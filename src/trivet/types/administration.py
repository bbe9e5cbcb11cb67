"""Values of running a store: statistics, health, users, keys, budgets, sync."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from trivet.types.memories import Value

Permission = Literal["read", "write"]


Role = Literal["reader", "writer", "admin"]


# What a key of a server allows. `reveal` shows secrets and sensitive contents, `admin` sees the acts of all users.
Right = Literal["read", "write", "share", "reveal", "admin"]


TidyKind = Literal["duplicate", "expired", "unused", "unhelpful", "orphan"]


# What `mend` can do, in the words of the command line.
Mending = Literal["reindex lexical", "reindex vectors", "reindex graph", "embed"]


class Stats(Value, frozen=True, kw_only=True):
    """Counts of what a store holds and of the work still waiting."""

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
    read_in_part: int = 0  # took too long to read for the graph, since this process began
    mending: Mending | None = None  # what `mend` does now, in the process that answers
    embedder: str | None
    schema: int
    bytes: int | None
    notes: tuple[str, ...] = ()


class Caller(Value, frozen=True, kw_only=True):
    """Who calls a server: a user of a tenant, and the rights of the key they used."""

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
    """An API key without its secret, which is shown once, when it is made, and stored only as a hash."""

    id: str
    user: str
    rights: tuple[Right, ...]
    label: str
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


class NewKey(Key, frozen=True, kw_only=True):
    """An API key that was just made. `key` is its text, which is shown this once."""

    key: str


class Share(Value, frozen=True, kw_only=True):
    """A memory, or all memories of an owner with a tag, shared with a user or, as *, with everyone of the tenant."""

    owner: str
    id: str | None = None
    tag: str | None = None
    user: str
    permission: Permission
    created_at: datetime


class SyncStatus(Value, frozen=True, kw_only=True):
    """How far a store that follows a server is from it: what waits since when, clashed, was refused or stays here.

    `contact` is when the server last answered. `level` is None where it was not asked whether both hold the same, and
    `trouble` says why it could not be.
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
    """An edit that clashed with a memory and lies beside it: the fields in which both differ, and the edit's author.

    `name` is the memory's title or the beginning of its text; `diff` leads from the memory to the edit.
    `masked`: one of them is sensitive, and the words of both are left out.
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
    """What a server refused to take from the store that follows it: the reason, and what was to be said.

    `name` is the memory's title or the beginning of its text; None where the memory is not here any longer.
    `masked`: its words are or were sensitive, and are left out.
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
    """How much of a limited resource is used; `allowed` is None if no limit is set."""

    name: str
    unit: Literal["MB", "tokens today"]
    used: float
    allowed: float | None = None
    setting: str

    @property
    def exceeded(self) -> bool:
        return self.allowed is not None and self.used > self.allowed


class Tidied(Value, frozen=True, kw_only=True):
    """One memory that a tidy forgot, or with a dry run would forget, and why. `act` says what is done with it."""

    kind: TidyKind
    id: str
    reason: str
    act: Literal["forget", "look"]
    content: str


class Tidy(Value, frozen=True, kw_only=True):
    """What a tidy found. `run` is the id by which it is undone; None if nothing was forgotten."""

    findings: tuple[Tidied, ...]
    forgotten: int = 0
    dry_run: bool = True
    run: str | None = None
    notes: tuple[str, ...] = ()


class Count(Value, frozen=True, kw_only=True):
    """How many memories that the caller may see have a tag, a category or a source, or were created on a day."""

    name: str
    memories: int


class AuditEntry(Value, frozen=True, kw_only=True):
    """One act: what was done when, by whom, to which memory. It never holds a secret."""

    at: datetime
    actor: str | None
    act: str
    memory: str | None
    detail: str


class Redacted(Value, frozen=True, kw_only=True):
    """What redacting stored memories took out: how many memories had secrets, and the secrets by kind.

    `pending` says where the old texts are still to be erased from the files, if anywhere.
    """

    memories: int
    secrets: Mapping[str, int]
    pending: str | None = None


class Purged(Value, frozen=True, kw_only=True):
    """A memory that is gone. `pending` says where words of it are still to be erased from the files, if anywhere."""

    id: str
    pending: str | None = None


class Rotated(Value, frozen=True, kw_only=True):
    """What a rotation of keys did: the new key's id, how many secrets are sealed anew, how many old keys are gone.

    `resumed`: it went on with the key of an earlier rotation that was not finished here. `kept` names the old keys that
    should have been dropped and were not, each with the stores that may still need it.
    """

    key: str
    resealed: int
    dropped: int = 0
    resumed: bool = False
    kept: Mapping[str, tuple[str, ...]] = {}


class Finding(Value, frozen=True, kw_only=True):
    """One check of `doctor`. A problem says why it matters and what mends it; `mends` is the act that `mend` takes."""

    check: str
    ok: bool
    detail: str
    remedy: str | None = None
    matters: str | None = None
    mends: Mending | None = None


class Mended(Value, frozen=True, kw_only=True):
    """What `mend` began, or found begun. It goes on in the background; `stats` tells when it is done."""

    act: Mending
    status: Literal["started", "under way already"]
