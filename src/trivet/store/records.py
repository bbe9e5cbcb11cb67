"""The values that go into the store and come out of it, beside those of trivet/types.py that callers see too.

What travels between the stores of a laptop and of its server: a memory with its history, whole.

Everything is in the words of JSON, so that a field which one side does not know yet survives the journey.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, Protocol

import msgspec

from trivet.memory_fields import FIELDS
from trivet.types import Key, LinkKind, Memory, Permission, Revision, Role, Sealed, Usefulness

# What made the derived data of a store; another version of it makes them anew.
VersionedComponent = Literal["analyser", "extraction", "changes"]


class Document(msgspec.Struct, frozen=True):
    """What is made of a memory's text when it is stored: its terms by field, as the lexical index takes them, its
    fingerprint (see likeness.py), and the times that it names (see search/said.py)."""

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
        """What stands in the memory's own row."""
        return {"length": self.length, "times": self.times}


class IndexedText(NamedTuple):
    """A memory's terms in reading order, as the index holds them: separated by spaces."""

    content: str
    title: str


class Dated(Protocol):
    """When something was written, and from when to when it is true."""

    @property
    def created_at(self) -> datetime: ...
    @property
    def valid_from(self) -> datetime | None: ...
    @property
    def valid_to(self) -> datetime | None: ...


class MemoryDates(msgspec.Struct, frozen=True):
    """Of a memory, without its text. `times` are those that the text names, as they are stored (search/said.py)."""

    created_at: datetime
    valid_from: datetime | None
    valid_to: datetime | None
    times: str | None


class PendingEdit(msgspec.Struct, frozen=True):
    """The memory as an edit beside its history says it, by the edit's name; `terms` are what a branch is found by."""

    kind: Literal["branch", "parked", "carried"]
    name: str
    memory: Memory
    terms: str = ""


class Entry(msgspec.Struct, frozen=True):
    """A memory to add, the earlier revisions it brings along from another store, and the secrets taken out of them."""

    memory: Memory
    document: Document
    history: tuple[Revision, ...] = ()
    secrets: tuple[Sealed, ...] = ()
    beside: tuple[PendingEdit, ...] = ()


class PendingComparison(NamedTuple):
    """A memory that is not yet compared with its neighbours."""

    key: int
    id: str
    revision: int


class LikelyUpdate(NamedTuple):
    """The newer memory seems to make the older one outdated; `contested`: it updates another one far more surely."""

    newer: str
    older: str
    probability: float
    contested: bool = False


class StoredKey(NamedTuple):
    """A key as the store knows it, and the role of its user."""

    key: Key
    hash: bytes
    role: Role


class VaultRecord(msgspec.Struct, frozen=True):
    """A folder whose files were ingested, and how: `options` are the ingester's own."""

    name: str
    root: str
    options: str


class VaultFile(msgspec.Struct, frozen=True):
    """A file as it was when it was read, and what read it."""

    path: str
    size: int
    modified: int
    reader: str


class VaultPart(msgspec.Struct, frozen=True):
    """Which memory is which part of a file. `content` and `said` are digests: of the text, and of all it said."""

    id: str
    path: str
    place: str
    content: str
    said: str
    about: str


class VaultLink(msgspec.Struct, frozen=True):
    """A link that was made because a file says so."""

    source: str
    kind: LinkKind
    target: str


class FeedbackEntry(msgspec.Struct, frozen=True):
    """What a caller said of a memory that came for a query."""

    id: str
    query: str
    verdict: Usefulness
    at: str


class AddResult(msgspec.Struct, frozen=True):
    """`unchanged` when the same id and content were there already, at that revision."""

    status: Literal["stored", "unchanged"]
    revision: int


class StoredAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to a request that was sent before; None while it is being worked on.

    `acted`: it was not there before, and this call has made it.
    """

    request: bytes
    answer: bytes | None = None
    acted: bool = False


class Bm25(msgspec.Struct, frozen=True):
    """BM25's constants and the weight of each field."""

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
    """With its terms (`passage_terms.py`): None if stored before they were, empty if its memory has no other."""

    terms: str | None


class EmbeddingJob(msgspec.Struct, frozen=True):
    """A memory waiting to be embedded by a model."""

    key: int
    model: int
    revision: int
    attempts: int
    title: str | None
    content: str


class ExtractionJob(msgspec.Struct, frozen=True):
    """A memory waiting to be read for its concepts."""

    key: int
    revision: int
    attempts: int
    title: str | None
    content: str
    tags: tuple[str, ...]
    since: str  # when what it says began to hold, as far as we know


class NamedConcept(msgspec.Struct, frozen=True):
    """A concept that a query names: how many visible memories mention it, and what the walk would give it."""

    concept: int
    form: str
    held: int
    weight: float


class WalkSeeds(msgspec.Struct, frozen=True):
    """Where a walk starts: memories by id and concepts by key, each with its share of the start."""

    memories: Mapping[str, float]
    concepts: Mapping[int, float]


class Model(msgspec.Struct, frozen=True):
    """An embedding model whose vectors the store holds. One serves; another may be filling up beside it."""

    model: int
    identity: str
    spec: str
    dimension: int
    serving: bool


class Backlog(msgspec.Struct, frozen=True):
    """How much of a model's work is waiting, and what went wrong last."""

    waiting: int
    failing: int
    last_error: str | None


class SourcedMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory by where it came from. `shown`: the filter it was asked with lets it through."""

    id: str
    source: str | None
    start_line: int | None
    end_line: int | None
    deleted: bool
    sensitive: bool
    shown: bool


Access = Literal["own", "write", "read"]
Fields = Mapping[str, Any]
# What any store can keep. Whoever tells a number beyond that, or below nothing, is not believed.
Number = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]

# Not part of what a memory says: each machine writes these itself.
LOCAL_FIELDS = frozenset({"id", "owner", "revision", "updated_at"})
# What a reader with the right to write may not change, since it decides who sees a memory and whether it is found.
OWNER_ONLY_FIELDS = frozenset({"tags", "scope", "sensitive", "state", "valid_from", "valid_to"})
KNOWN_FIELDS = frozenset(field.name for field in FIELDS) - LOCAL_FIELDS


class Rev(msgspec.Struct, frozen=True, kw_only=True):
    """One revision. `rev` is its name on every machine, `base` the one it was made from."""

    rev: str
    base: str | None
    author: str | None  # None: the owner of the memory
    at: str
    action: str
    fields: Fields
    number: Number = 0  # its place in the history; a branch has none


class LinkRecord(msgspec.Struct, frozen=True, kw_only=True, order=True):
    source: str
    kind: LinkKind
    target: str
    created_at: str = ""

    @property
    def ends(self) -> tuple[str, str, str]:
        return self.source, self.kind, self.target


class ShareRecord(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """With whom a memory is shared, or a tag of its owner's."""

    grantee: str
    permission: Permission
    tag: str = ""


class FeedbackRecord(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """What a user said of a memory that came; `query` is empty where it was not said what was asked."""

    query: str
    verdict: Usefulness
    at: str = ""


class Bundle(msgspec.Struct, frozen=True, kw_only=True, tag="memory"):
    """A memory as one user may have it: its history, the edits beside it, its links, whom it is shared with."""

    id: str
    owner: str
    trunk: tuple[Rev, ...]
    branches: tuple[Rev, ...] = ()
    waiting: tuple[str, ...] = ()  # the branches that nobody has resolved
    links: tuple[LinkRecord, ...] = ()
    shares: tuple[ShareRecord, ...] = ()  # told to the owner alone
    feedback: tuple[FeedbackRecord, ...] = ()  # the user's own
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
    """What a stored revision says. `superseded` follows from links, which each machine has."""
    said = {name: value for name, value in snapshot.items() if name not in LOCAL_FIELDS}
    if said.get("state") == "superseded":
        said["state"] = "active"
    return said


def changes_between(old: Fields, new: Fields) -> dict[str, Any]:
    return {name: value for name, value in new.items() if name not in old or old[name] != value}
