"""Values that go into the store, come out of it, or are exchanged in sync.

Those for sync are JSON types, so that each side keeps fields that it does not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import msgspec

from trivet.memory_fields import FIELDS
from trivet.types import Key, LinkKind, Memory, Permission, Revision, Role, Sealed, Usefulness

# What derived the data; a newer version rebuilds it.
VersionedComponent = Literal["analyser", "extraction", "changes"]


class Document(msgspec.Struct, frozen=True):
    """Data derived from a memory's text: terms by field, fingerprint, and named times."""

    content: tuple[str, ...]
    title: tuple[str, ...]
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    category: tuple[str, ...]
    fingerprint: tuple[int, ...] = ()
    times: str | None = None

    @property
    def length(self) -> int:
        return len(self.content) + len(self.title)

    @property
    def row_values(self) -> dict[str, Any]:
        return {"length": self.length, "times": self.times}


class IndexedText(NamedTuple):
    content: str
    title: str


class Dated(Protocol):
    @property
    def created_at(self) -> datetime: ...
    @property
    def valid_from(self) -> datetime | None: ...
    @property
    def valid_to(self) -> datetime | None: ...


class MemoryDates(msgspec.Struct, frozen=True):
    """A memory's dates; `times` are named in its text (search/memory_times.py)."""

    created_at: datetime
    valid_from: datetime | None
    valid_to: datetime | None
    times: str | None


class PendingEdit(msgspec.Struct, frozen=True):
    """An edit outside a memory's history; `terms` let search find a branch."""

    kind: Literal["branch", "parked", "carried"]
    name: str
    memory: Memory
    terms: str = ""


class Entry(msgspec.Struct, frozen=True):
    memory: Memory
    document: Document
    history: tuple[Revision, ...] = ()
    secrets: tuple[Sealed, ...] = ()
    beside: tuple[PendingEdit, ...] = ()


class PendingComparison(NamedTuple):
    key: int
    id: str
    revision: int


class LikelyUpdate(NamedTuple):
    """A newer memory that probably updates an older one.

    `contested`: it updates another one far more probably.
    """

    newer: str
    older: str
    probability: float
    contested: bool = False


class StoredKey(NamedTuple):
    key: Key
    hash: bytes
    role: Role


class VaultRecord(msgspec.Struct, frozen=True):
    name: str
    root: str
    options: str


class VaultFile(msgspec.Struct, frozen=True):
    path: str
    size: int
    modified: int
    reader: str


class VaultPart(msgspec.Struct, frozen=True):
    """The memory of one part of a file; `content` and `said` are digests."""

    id: str
    path: str
    place: str
    content: str
    said: str
    about: str


class VaultLink(msgspec.Struct, frozen=True):
    source: str
    kind: LinkKind
    target: str


class FeedbackEntry(msgspec.Struct, frozen=True):
    id: str
    query: str
    verdict: Usefulness
    at: str


class AddResult(msgspec.Struct, frozen=True):
    status: Literal["stored", "unchanged"]
    revision: int


class StoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a repeated request; None while in progress.

    `acted`: this call made it.
    """

    request: bytes
    answer: bytes | None = None
    acted: bool = False


class Bm25(msgspec.Struct, frozen=True):
    k1: float
    b: float
    content: float
    title: float
    keywords: float
    tags: float
    category: float

    @property
    def field_weights(self) -> tuple[float, float, float, float, float]:
        return (self.content, self.title, self.keywords, self.tags, self.category)


class Passage(msgspec.Struct, frozen=True):
    """A window of a memory's content, by character positions."""

    ordinal: int
    start: int
    stop: int


class PassageWithTerms(Passage, frozen=True):
    """A passage with its terms: None if older than terms, empty if the only passage."""

    terms: str | None


class EmbeddingJob(msgspec.Struct, frozen=True):
    key: int
    model: int
    revision: int
    attempts: int
    title: str | None
    content: str


class ExtractionJob(msgspec.Struct, frozen=True):
    key: int
    revision: int
    attempts: int
    title: str | None
    content: str
    tags: tuple[str, ...]
    since: str  # start of validity, if known


class NamedConcept(msgspec.Struct, frozen=True):
    """A concept named in a query, held by `held` visible memories."""

    concept: int
    form: str
    held: int
    weight: float


class WalkSeeds(msgspec.Struct, frozen=True):
    memories: Mapping[str, float]
    concepts: Mapping[int, float]


class Model(msgspec.Struct, frozen=True):
    """An embedding model; one serves, another may be filling up."""

    model: int
    identity: str
    spec: str
    dimension: int
    serving: bool


class Backlog(msgspec.Struct, frozen=True):
    waiting: int
    failing: int
    last_error: str | None


class SourcedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory found by source; `shown`: the filter lets it through."""

    id: str
    source: str | None
    start_line: int | None
    end_line: int | None
    deleted: bool
    sensitive: bool
    shown: bool


Access = Literal["own", "write", "read"]
Fields = Mapping[str, Any]
# Every database can store these; other machines may send no other number.
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

# Set by each machine, not synced.
LOCAL_FIELDS = frozenset({"id", "owner", "revision", "updated_at"})
# These decide who sees a memory and whether recall finds it.
OWNER_ONLY_FIELDS = frozenset({"tags", "scope", "sensitive", "state", "valid_from", "valid_to"})
KNOWN_FIELDS = frozenset(field.name for field in FIELDS) - LOCAL_FIELDS


class Rev(msgspec.Struct, frozen=True, kw_only=True):
    """A revision; `rev` names it on every machine, `base` its parent."""

    rev: str
    base: str | None
    author: str | None  # None: the owner of the memory
    at: str
    action: str
    fields: Fields
    number: Number = 0  # position in the history; 0 for a branch


class LinkRecord(msgspec.Struct, frozen=True, kw_only=True, order=True):
    source: str
    kind: LinkKind
    target: str
    created_at: str = ""

    @property
    def ends(self) -> tuple[str, str, str]:
        return self.source, self.kind, self.target


class ShareRecord(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A share of a memory or, with `tag`, of its owner's memories so tagged."""

    grantee: str
    permission: Permission
    tag: str = ""


class FeedbackRecord(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """A user's verdict; `query` is empty if unknown."""

    query: str
    verdict: Usefulness
    at: str = ""


class Bundle(msgspec.Struct, frozen=True, kw_only=True, tag="memory"):
    """A memory as one user may have it."""

    id: str
    owner: str
    trunk: tuple[Rev, ...]
    branches: tuple[Rev, ...] = ()
    waiting: tuple[str, ...] = ()  # unresolved branches
    links: tuple[LinkRecord, ...] = ()
    shares: tuple[ShareRecord, ...] = ()  # sent to the owner only
    feedback: tuple[FeedbackRecord, ...] = ()  # this user's own
    access: Access = "own"
    epoch: str = ""
    seq: Number = 0

    @property
    def head(self) -> Rev:
        return self.trunk[-1]

    @property
    def revs(self) -> dict[str, Rev]:
        return {one.rev: one for one in (*self.branches, *self.trunk)}


def fields_of(snapshot: Fields) -> dict[str, Any]:
    """Return a revision's synced fields, with the local `superseded` as `active`."""
    fields = {name: value for name, value in snapshot.items() if name not in LOCAL_FIELDS}
    if fields.get("state") == "superseded":
        fields["state"] = "active"
    return fields


def changes_between(old: Fields, new: Fields) -> dict[str, Any]:
    return {name: value for name, value in new.items() if name not in old or old[name] != value}
