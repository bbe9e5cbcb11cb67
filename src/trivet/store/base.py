"""What every store can do. The facade, the two paths and the worker know this and nothing below it.

A store keeps memories, their links, their jobs, two searchable indexes and a graph of concepts. Every write method is
one transaction.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Protocol

import msgspec

from trivet.graph.mentions import Mention, Reader, Triple
from trivet.graph.walk import Walk
from trivet.types import (
    AuditEntry,
    Candidate,
    Concept,
    ConceptPage,
    ConceptSort,
    Count,
    Filter,
    Finding,
    Key,
    Link,
    LinkKind,
    Memory,
    Neighbourhood,
    Page,
    PathStep,
    Permission,
    Proposal,
    ProposalPage,
    ProposalState,
    Revision,
    Role,
    Sealed,
    Share,
    Sort,
    Stats,
    Usage,
    Usefulness,
    User,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


# What made the derived data of a store; another version of it makes them anew.
Maker = Literal["analyser", "extraction"]


class Document(msgspec.Struct, frozen=True):
    """A memory's terms by field, as the lexical index takes them, and its fingerprint (see likeness.py)."""

    content: tuple[str, ...]
    title: tuple[str, ...]
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    category: tuple[str, ...]
    fingerprint: tuple[int, ...] = ()

    @property
    def length(self) -> int:
        return len(self.content) + len(self.title)


class Entry(msgspec.Struct, frozen=True):
    """A memory to add, the earlier revisions it brings along from another store, and the secrets taken out of them."""

    memory: Memory
    document: Document
    history: tuple[Revision, ...] = ()
    secrets: tuple[Sealed, ...] = ()


class KnownKey(NamedTuple):
    """A key as the store knows it, and the role of its user."""

    key: Key
    hash: bytes
    role: Role


class KnownVault(msgspec.Struct, frozen=True):
    """A folder whose files were ingested, and how: `options` are the ingester's own."""

    name: str
    root: str
    options: str


class KnownFile(msgspec.Struct, frozen=True):
    """A file as it was when it was read, and what read it."""

    path: str
    size: int
    modified: int
    reader: str


class KnownPart(msgspec.Struct, frozen=True):
    """Which memory is which part of a file. `content` and `said` are digests: of the text, and of all it said."""

    id: str
    path: str
    place: str
    content: str
    said: str
    about: str


class KnownLink(msgspec.Struct, frozen=True):
    """A link that was made because a file says so."""

    source: str
    kind: LinkKind
    target: str


class Judged(msgspec.Struct, frozen=True):
    """What somebody said of a memory that came for a query."""

    id: str
    query: str
    verdict: Usefulness
    at: str


class Added(msgspec.Struct, frozen=True):
    """`unchanged` when the same id and content were there already, at that revision."""

    status: Literal["stored", "unchanged"]
    revision: int


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """A request that was sent before, and its answer; none while it is being worked on."""

    request: bytes
    answer: bytes | None = None


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


class Job(msgspec.Struct, frozen=True):
    """A memory waiting to be embedded by a model."""

    key: int
    model: int
    revision: int
    attempts: int
    title: str | None
    content: str


class Reading(msgspec.Struct, frozen=True):
    """A memory waiting to be read for its concepts."""

    key: int
    revision: int
    attempts: int
    title: str | None
    content: str
    tags: tuple[str, ...]
    since: str  # when what it says began to hold, as far as we know


class Named(msgspec.Struct, frozen=True):
    """A concept that a query names: how many visible memories mention it, and what the walk would give it."""

    concept: int
    form: str
    held: int
    weight: float


class Seeds(msgspec.Struct, frozen=True):
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


class Sourced(msgspec.Struct, frozen=True, kw_only=True):
    """A memory by where it came from. `shown`: the filter it was asked with lets it through."""

    id: str
    source: str | None
    start_line: int | None
    end_line: int | None
    deleted: bool
    sensitive: bool
    shown: bool


class Memories(Protocol):
    def add_many(self, entries: Sequence[Entry]) -> list[Added]: ...
    def replace(self, memory: Memory, document: Document, action: str, secrets: Sequence[Sealed] = ()) -> Memory: ...
    def scrub(self, entry: Entry) -> None: ...
    def purge(self, id: str) -> None: ...
    def get(self, id: str) -> Memory: ...
    def get_many(self, ids: Sequence[str]) -> dict[str, Memory]: ...
    def revisions(self, id: str) -> tuple[Revision, ...]: ...
    def page(self, filter: Filter, sort: Sort, limit: int, offset: int) -> Page: ...
    def everything(self) -> Iterator[Memory]: ...
    def is_visible(self, id: str, filter: Filter) -> bool: ...
    def visible_count(self, filter: Filter) -> int: ...
    def of_sources(self, names: Sequence[str], filter: Filter) -> tuple[Sourced, ...]: ...
    def claim(self, id: str) -> str: ...
    def tags(self, filter: Filter, limit: int) -> tuple[Count, ...]: ...
    def categories(self, filter: Filter) -> tuple[Count, ...]: ...
    def stats(self) -> Stats: ...


class Links(Protocol):
    def add(self, link: Link) -> bool: ...
    def remove(self, source: str, kind: LinkKind, target: str) -> None: ...
    def touching(self, ids: Sequence[str]) -> tuple[Link, ...]: ...
    def to_targets(self, ids: Sequence[str], kind: LinkKind) -> tuple[Link, ...]: ...
    def from_sources(self, ids: Sequence[str], kind: LinkKind) -> tuple[Link, ...]: ...
    def everything(self) -> tuple[Link, ...]: ...


class LexicalIndex(Protocol):
    def search(
        self, terms: Sequence[str], required: Sequence[str], enough: int, filter: Filter, bm25: Bm25, depth: int
    ) -> list[Candidate]: ...
    def similar(self, id: str, fingerprint: Sequence[int], limit: int, viewer: str | None = None) -> list[str]: ...
    def holders(self, terms: Sequence[str], filter: Filter, bm25: Bm25) -> dict[str, int]: ...


class VectorIndex(Protocol):
    def models(self) -> tuple[Model, ...]: ...
    def adopt(self, identity: str, spec: str, dimension: int) -> Model: ...
    def search(self, model: Model, vector: NDArray[np.float32], filter: Filter, depth: int) -> list[Candidate]: ...
    def serve(self, model: Model) -> None: ...
    def remove(self, model: Model) -> None: ...
    def spans(self, model: Model, ids: Sequence[str]) -> dict[str, tuple[Passage, ...]]: ...


class Jobs(Protocol):
    def lease(self, model: Model, limit: int, seconds: float) -> tuple[Job, ...]: ...
    def finish(self, done: Sequence[tuple[Job, Sequence[Passage], NDArray[np.float32]]]) -> None: ...
    def fail(self, jobs: Sequence[Job], error: str, retry_after: Mapping[int, float]) -> None: ...
    def release(self, jobs: Sequence[Job]) -> None: ...
    def backlog(self, model: Model) -> Backlog: ...
    def backlog_with_readings(self, model: Model) -> tuple[Backlog, int]:
        """And how many memories wait to be read by the rules, asked together: every answer tells both."""

    def retry_now(self) -> None: ...
    def seconds_until_due(self, model: Model) -> float | None: ...


class GraphIndex(Protocol):
    """The concept graph: what keeps it, what walks it. What people look at is in `Concepts`."""

    def lease(self, reader: Reader, limit: int, seconds: float) -> tuple[Reading, ...]: ...
    def finish_mentions(self, done: Sequence[tuple[Reading, Sequence[Mention]]]) -> None: ...
    def finish_triples(self, done: Sequence[tuple[Reading, Sequence[Triple]]]) -> None: ...
    def fail(self, reader: Reader, readings: Sequence[Reading], error: str, retry_after: float) -> None: ...
    def release(self, reader: Reader, readings: Sequence[Reading]) -> None: ...
    def backlog(self, reader: Reader) -> Backlog: ...
    def ask_for_triples(self) -> int: ...
    def retry_now(self, reader: Reader) -> None: ...
    def means(self, labels: Sequence[str]) -> dict[str, str]: ...
    def names_with(self, terms: Sequence[str]) -> tuple[tuple[str, str], ...]: ...
    def spend(self, tokens: int, most: int) -> bool: ...
    def spent(self) -> int: ...
    def behind(self) -> bool: ...
    def named(self, forms: Sequence[str], filter: Filter, walk: Walk) -> tuple[Named, ...]: ...
    def walk(self, seeds: Seeds, filter: Filter, walk: Walk, depth: int) -> list[Candidate]: ...
    def paths(
        self, ids: Sequence[str], seeds: Seeds, filter: Filter, walk: Walk
    ) -> dict[str, tuple[PathStep, ...]]: ...


class Concepts(Protocol):
    """What people look at of the graph, within what a filter lets them see."""

    def page(
        self, filter: Filter, contains: str | None, kind: str | None, sort: ConceptSort, limit: int, offset: int
    ) -> ConceptPage: ...
    def find(self, name: str, form: str, filter: Filter) -> Concept | None: ...
    def around(self, start: Memory | Concept, filter: Filter, depth: int, most: int) -> Neighbourhood: ...


class Once(Protocol):
    """Requests that must act once. Whoever begins one first acts; who comes again gets what was kept."""

    def begin(self, name: bytes, request: bytes, lease_seconds: float) -> Kept | None: ...
    def finish(self, name: bytes, answer: bytes) -> None: ...
    def give_up(self, name: bytes) -> None: ...


class Secrets(Protocol):
    """Sealed secrets, which go with their memories."""

    def of(self, id: str) -> tuple[Sealed, ...]: ...
    def not_under(self, key: str, limit: int) -> tuple[tuple[str, Sealed], ...]: ...
    def reseal(self, done: Sequence[tuple[str, Sealed]]) -> None: ...


class Shares(Protocol):
    def share_memory(self, id: str, user: str, permission: Permission) -> Share: ...
    def share_tag(self, tag: str, user: str, permission: Permission) -> Share: ...
    def unshare_memory(self, id: str, user: str) -> None: ...
    def unshare_tag(self, tag: str, user: str) -> None: ...
    def all(self) -> tuple[Share, ...]: ...


class Accounts(Protocol):
    """The users of a server and their keys."""

    def add_user(self, name: str, role: Role) -> User: ...
    def set_role(self, name: str, role: Role) -> None: ...
    def remove_user(self, name: str) -> None: ...
    def has(self, name: str) -> bool: ...
    def user(self, name: str) -> User: ...
    def users(self) -> tuple[User, ...]: ...
    def add_key(self, key: Key, hash: bytes) -> None: ...
    def key(self, id: str) -> KnownKey | None: ...
    def keys(self) -> tuple[Key, ...]: ...
    def revoke(self, id: str) -> None: ...


class Audit(Protocol):
    """The record of who did what, which stays when memories go."""

    def note(self, act: str, memory: str | None, detail: str) -> None: ...
    def noted(self, limit: int, actor: str | None = None) -> tuple[AuditEntry, ...]: ...


class Vaults(Protocol):
    """What was ingested from files. It is read and written by whoever has the store."""

    def vaults(self) -> tuple[KnownVault, ...]: ...
    def keep(self, vault: KnownVault) -> None: ...
    def drop(self, name: str) -> None: ...
    def files(self, vault: str) -> tuple[KnownFile, ...]: ...
    def parts(self, vault: str) -> tuple[KnownPart, ...]: ...
    def note_file(self, vault: str, file: KnownFile, parts: Sequence[KnownPart], gone: Sequence[str]) -> None: ...
    def forget_file(self, vault: str, path: str, gone: Sequence[str]) -> None: ...
    def set_lines(self, id: str, start: int | None, stop: int | None) -> None: ...
    def links(self, vault: str) -> tuple[KnownLink, ...]: ...
    def note_links(self, vault: str, added: Sequence[KnownLink], removed: Sequence[KnownLink]) -> None: ...


class Inbox(Protocol):
    """Proposals that wait for review. `said` is what a proposal says, so that the same is known again."""

    def add(self, proposal: Proposal, said: Sequence[str]) -> None: ...
    def get(self, id: str) -> Proposal: ...
    def page(self, state: ProposalState, limit: int, offset: int) -> ProposalPage: ...
    def decide(self, id: str, state: ProposalState, stored: str | None = None) -> Proposal: ...
    def rewrite(self, proposal: Proposal, said: Sequence[str]) -> Proposal: ...
    def same(self, said: Sequence[str]) -> Proposal | None: ...
    def latest(self, limit: int) -> tuple[Proposal, ...]: ...
    def uncurated(self, limit: int) -> tuple[Proposal, ...]: ...
    def spend(self, tokens: int, most: int) -> bool: ...
    def spent(self) -> int: ...


class UsageCounts(Protocol):
    """How often memories were shown and what was said of them, kept for tuning; no rank depends on it."""

    def note(self, shown: Mapping[str, int]) -> None: ...
    def since(self) -> str | None: ...
    def of(self, id: str) -> Usage: ...
    def shown(self) -> frozenset[str]: ...
    def judge(self, id: str, query: str, verdict: Usefulness) -> None: ...
    def judged(self) -> tuple[Judged, ...]: ...


class Upkeep(Protocol):
    def backup(self, target: Path) -> None: ...
    def rebuild_lexical(self, documents: Iterator[tuple[Memory, Document]]) -> int: ...
    def rebuild_vectors(self) -> int: ...
    def rebuild_graph(self) -> int: ...
    def findings(self) -> tuple[Finding, ...]: ...
    def version(self, maker: Maker) -> int: ...
    def set_version(self, maker: Maker, version: int) -> None: ...


class Store(Protocol):
    """A place where memories live."""

    @property
    def memories(self) -> Memories: ...
    @property
    def links(self) -> Links: ...
    @property
    def lexical(self) -> LexicalIndex: ...
    @property
    def vectors(self) -> VectorIndex: ...
    @property
    def graph(self) -> GraphIndex: ...
    @property
    def concepts(self) -> Concepts: ...
    @property
    def jobs(self) -> Jobs: ...
    @property
    def secrets(self) -> Secrets: ...
    @property
    def shares(self) -> Shares: ...
    @property
    def accounts(self) -> Accounts: ...
    @property
    def audit(self) -> Audit: ...
    @property
    def vaults(self) -> Vaults: ...
    @property
    def inbox(self) -> Inbox: ...
    @property
    def usage(self) -> UsageCounts: ...
    @property
    def once(self) -> Once: ...
    @property
    def upkeep(self) -> Upkeep: ...
    def moment(self) -> AbstractContextManager[None]:
        """Reads within it know every write that was acknowledged before it began, and need not look for later ones."""

    def together(self) -> AbstractContextManager[None]:
        """What is written within it, by any part of the store, is one transaction."""

    def seen_by(self, user: str) -> Store:
        """The same store as a user of a server sees it: reads are limited in SQL, writes checked and on the record.

        Filters must name the same user; the indexes are shared. It is not to be closed.
        """

    def close(self) -> None: ...
