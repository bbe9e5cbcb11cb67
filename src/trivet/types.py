"""The public values of Trivet. All are frozen; none knows how it is stored or found.

Docstrings of the structs are published as descriptions in the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

State = Literal["active", "superseded", "archived", "deleted"]
Permission = Literal["read", "write"]
Role = Literal["reader", "writer", "admin"]
# What a key of a server allows. `reveal` shows secrets and sensitive contents, `admin` sees the acts of all users.
Right = Literal["read", "write", "share", "reveal", "admin"]
# The owner of memories that were stored without a server.
LOCAL = "local"
LinkKind = Literal["supersedes", "resolved-by", "part-of", "see-also"]
Sort = Literal["relevance", "importance", "recency"]
Rerank = Literal["off", "auto", "fast", "best"]
Strength = Literal["strong", "possible", "weak"]
# Why a proposal is worth keeping, what accepting it does, and what the user decided.
ProposalKind = Literal["asked", "decision", "preference", "correction", "workaround", "told"]
ProposalAction = Literal["add", "update", "supersede", "nothing"]
ProposalState = Literal["waiting", "accepted", "rejected"]
TidyKind = Literal["duplicate", "expired", "unused", "unhelpful", "orphan"]
Usefulness = Literal["useful", "not-useful"]
ConceptKind = Literal["name", "title", "tag", "quoted", "identifier", "path", "code", "url", "date"]
ConceptSort = Literal["memories", "name"]

# What `mend` can do, in the words of the command line.
Mending = Literal["reindex lexical", "reindex vectors", "reindex graph", "embed"]

# Called by long work, each time with how many more are done.
Progress = Callable[[int], None]


class Value(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of every value: immutable, compared by content, readable and writable as JSON.

    Values refer to each other in no circles, so the garbage collector need not track the hundreds that a recall makes.
    """


class Source(Value, frozen=True, kw_only=True):
    """Where a memory came from: a URI or path and, for files, the lines."""

    uri: str
    start_line: int | None = None
    end_line: int | None = None


class Memory(Value, frozen=True, kw_only=True):
    """One self-contained text with what is known about it. Times are in UTC: datetimes in Python, ISO 8601 in JSON."""

    id: str
    content: str
    title: str | None = None
    category: str = "facts"
    tags: tuple[str, ...] = ()
    importance: float = 0.5
    confidence: float = 1.0
    expanded_keywords: tuple[str, ...] = ()
    scope: str = "default"
    source: Source | None = None
    created_at: datetime
    updated_at: datetime
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    state: State = "active"
    sensitive: bool = False
    revision: int = 1
    owner: str = LOCAL


class Link(Value, frozen=True, kw_only=True):
    """A typed edge from one memory to another, read as a sentence: `source` supersedes `target`."""

    kind: LinkKind
    source: str
    target: str
    created_at: datetime


class Revision(Value, frozen=True, kw_only=True):
    """A memory at one point of its history, and the act that made it so."""

    revision: int
    changed_at: datetime
    action: str
    memory: Memory


class Filter(Value, frozen=True, kw_only=True):
    """Which memories a read may see. It is part of every query of every leg, never applied afterwards.

    Its times are stamps, as the columns hold them.
    """

    scope: str | None = None
    categories: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    states: tuple[State, ...] = ("active", "superseded")
    source: str | None = None
    created_after: str | None = None
    created_before: str | None = None
    as_of: str | None = None
    viewer: str | None = None  # a user of a server, who sees their own memories and those shared with them


class Candidate(Value, frozen=True, kw_only=True):
    """One memory as a leg sees it. `passage` is the ordinal of its best passage where the leg knows one.

    `estimated`: the leg cannot see the memory (a sensitive one has no vector), and other evidence stands for its score.
    """

    id: str
    score: float
    passage: int | None = None
    estimated: bool = False


class Ranking(Value, frozen=True, kw_only=True):
    """What a leg returns: best first, ties broken by id, every score finite and at or above `floor`.

    `floor` is the least score that the leg can give; a memory that it did not return counts as that.
    """

    leg: str
    floor: float
    candidates: tuple[Candidate, ...] = ()


class Contribution(Value, frozen=True, kw_only=True):
    """What one leg gave to one fused candidate. `rank` is None where the leg did not return it."""

    leg: str
    rank: int | None
    score: float
    normalised: float
    weight: float
    estimated: bool = False


class Fused(Value, frozen=True, kw_only=True):
    """A candidate after fusion: its score on 0..1, and each leg's part in it.

    If a reranker read it, `rerank` is its result and `blended` the score that counts from then on.
    """

    id: str
    score: float
    contributions: tuple[Contribution, ...]
    rerank: Contribution | None = None
    blended: float | None = None

    @property
    def standing(self) -> float:
        """The score that decides its rank."""
        return self.score if self.blended is None else self.blended


class PathStep(Value, frozen=True, kw_only=True):
    """A step on the path from the query to a memory: a concept by its usual writing, or a memory by its id."""

    kind: Literal["concept", "memory"]
    name: str


class Why(Value, frozen=True, kw_only=True):
    """Why a hit has its rank: each leg's part, then what every later step did to the score."""

    legs: Annotated[Mapping[str, Contribution], Meta(description="What each leg found: its rank there and its score.")]
    matched_words: Annotated[tuple[str, ...], Meta(description="The words of the query that it holds.")]
    fused: Annotated[float, Meta(description="The score of all legs together.")]
    exactness: Annotated[
        float, Meta(description="How much of the quoted words or identifiers it holds exactly, 0 to 1.")
    ]
    bonus: Annotated[float, Meta(description="What that adds to the score.")]
    prior: Annotated[float, Meta(description="The factor of its importance.")]
    rerank: Annotated[
        Contribution | None,
        Meta(
            description="The reranker's result, if it read it: place and raw score among those it read, the deviation "
            "from their mean, and its weight in `blended`."
        ),
    ] = None
    blended: Annotated[float | None, Meta(description="The score after the reranker.")] = None
    redirected_from: Annotated[
        tuple[str, ...],
        Meta(description="Ids of superseded memories that matched well enough to be read and led to this one."),
    ] = ()
    collapsed: Annotated[
        tuple[str, ...], Meta(description="Ids of hits that say the same and were folded into this one.")
    ] = ()
    yields_to: Annotated[
        tuple[str, ...],
        Meta(description="Ids of notes that this page of links lists, and that stand before it for that."),
    ] = ()
    path: Annotated[
        tuple[PathStep, ...],
        Meta(description="How the graph reached it: the query, then these concepts and memories, then this one."),
    ] = ()
    time: Annotated[str | None, Meta(description="Why it belongs to the time that the query names.")] = None
    time_factor: Annotated[float, Meta(description="The factor of what does not belong to that time.")] = 1.0
    older_than: Annotated[
        str | None, Meta(description="A later hit on the same matter, which may have replaced it.")
    ] = None
    newer_than: Annotated[
        tuple[str, ...], Meta(description="Earlier hits on the same matter, before which it stands for that.")
    ] = ()
    conflicts: Annotated[
        tuple[str, ...],
        Meta(description="Edits that clashed with it and wait for a decision; `sync conflicts` shows them."),
    ] = ()


class Resolution(Value, frozen=True, kw_only=True):
    """A memory that resolves a hit, attached to it."""

    id: str
    content: str


class Hit(Memory, frozen=True, kw_only=True):
    """One recalled memory: its own fields, and those of the hit. This is its shape on every surface (docs/hit.md).

    Agents are given fewer of the fields (serve/mcp/result_types.py), under the same names.
    """

    passage: Annotated[str, Meta(description="The part of the content that matched best.")]
    score: Annotated[float, Meta(description="0 to 1; compares it with the other candidates of this query.")]
    rank: Annotated[int, Meta(description="Its place in the answer, from 1 on.")]
    why: Annotated[Why, Meta(description="Why it has its rank: what each leg found, and what every later step did.")]
    resolved_by: Annotated[
        tuple[Resolution, ...], Meta(description="The memories that resolve it, each with id and content.")
    ] = ()
    relevance: Annotated[float, Meta(description="How likely it is to be relevant at all, 0 to 1.")] = 0.0
    strength: Annotated[Strength, Meta(description="The relevance in a word: strong, possible or weak.")] = "weak"

    @property
    def memory(self) -> Memory:
        """The memory alone, without what this query made of it."""
        return Memory(**{name: getattr(self, name) for name in Memory.__struct_fields__})


class ForeignHit(Value, frozen=True, kw_only=True):
    """A hit of another system that is no memory of this store. Its text is cut to a limit, and is not to be trusted.

    `id` is a URI or a path that systems share, or else the other system's own id. `rank` counts all hits of the
    answer, memories included.
    """

    systems: tuple[str, ...]
    id: str
    text: str
    score: float
    rank: int
    legs: Mapping[str, Contribution]
    title: str | None = None
    line: int | None = None


class LegHealth(Value, frozen=True, kw_only=True):
    """Whether a leg answered, how many candidates it gave, and if not, why not."""

    leg: str
    answered: bool
    candidates: int = 0
    took_ms: float = 0.0
    reason: str | None = None


class Health(Value, frozen=True, kw_only=True):
    """The state of legs, embedder and queues behind an answer, so that no degradation is silent."""

    degraded: bool
    legs: tuple[LegHealth, ...]
    embedder: str | None
    memories: int
    not_embedded: int
    failing_jobs: int
    not_in_graph: int = 0
    last_error: str | None = None
    notes: tuple[str, ...] = ()


class Answer(Value, frozen=True, kw_only=True):
    """The reply to a recall: the hits, the health of what made them, and how long each stage took.

    `nothing_relevant`: even the likeliest candidate, at `best_relevance`, is below `relevance_at_least`, or below the
    calibrated threshold if the caller set none. The best candidates are among the hits all the same, unless the caller
    set one.
    """

    query: str
    hits: tuple[Hit, ...]
    health: Health
    took_ms: float
    stages_ms: Mapping[str, float]
    recipe: str
    considered: int = 0
    truncated: bool = False
    nothing_relevant: bool = False
    best_relevance: float | None = None
    foreign: tuple[ForeignHit, ...] = ()  # hits of other systems, in a federated recall
    asked: tuple[str, ...] = ()  # the query's parts or rewrites that were asked too, if the first answer was unsure

    def _repr_html_(self) -> str:
        """How a notebook shows it."""
        return _in_notebook("answer_html", self)


class Duplicate(Value, frozen=True, kw_only=True):
    """A stored memory that says nearly the same as one just saved. Nothing was merged."""

    id: str
    similarity: float
    content: str


class PossibleUpdate(Value, frozen=True, kw_only=True):
    """A stored memory that the one just saved may update: the same matter, said otherwise. Nothing was linked.

    `probability` is how likely that is, and `why` what speaks for it.
    """

    id: str
    content: str
    why: str
    probability: float


class Remembered(Value, frozen=True, kw_only=True):
    """What `remember` did: `stored`, or `unchanged` if the same id and content were stored already.

    `may_update` names memories that the new one may replace; the caller decides and links them with supersedes.
    `redacted` says how many secrets of each kind were replaced by placeholders before anything was stored.
    """

    id: str
    status: Literal["stored", "unchanged"]
    revision: int
    near_duplicates: tuple[Duplicate, ...] = ()
    may_update: tuple[PossibleUpdate, ...] = ()
    redacted: Mapping[str, int] = {}


class WhyNot(Value, frozen=True, kw_only=True):
    """Why a memory did or did not come back for a query, found by running that query."""

    query: str
    id: str
    returned: bool
    rank: int | None
    verdict: str
    reasons: tuple[str, ...]
    legs: Mapping[str, Contribution]


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


class Page(Value, frozen=True, kw_only=True):
    """One page of a listing and the total behind it."""

    memories: tuple[Memory, ...]
    total: int
    offset: int


class Concept(Value, frozen=True, kw_only=True):
    """Something that memories mention. `name` is common to all its writings, `label` the most frequent writing."""

    name: str
    label: str
    aliases: tuple[str, ...] = ()
    kind: str
    memories: int


class ConceptPage(Value, frozen=True, kw_only=True):
    """One page of the concepts and the total behind it; `not_in_graph` memories still wait to be read."""

    concepts: tuple[Concept, ...]
    total: int
    offset: int
    not_in_graph: int = 0


class GraphNode(Value, frozen=True, kw_only=True):
    """A memory by its id, or a concept by its name with the number of memories that mention it.

    `distance` is the number of steps from where the neighbourhood starts.
    """

    kind: Literal["memory", "concept"]
    id: str
    label: str
    distance: int
    concept_kind: str | None = None
    memories: int | None = None
    sensitive: bool = False


class GraphEdge(Value, frozen=True, kw_only=True):
    """A mention (memory to concept, `relation` is its role), a link between memories, or a statement on two concepts.

    A statement says from when to when it holds, since when it is known, which memory says it and which one ended it.
    """

    kind: Literal["mention", "link", "statement"]
    source: str
    target: str
    relation: str
    weight: float = 1.0
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    recorded_at: datetime | None = None
    evidence: str | None = None
    ended_by: str | None = None


class Neighbourhood(Value, frozen=True, kw_only=True):
    """The surroundings of a memory or a concept. The first node is the start; the others come nearest first."""

    start: str
    depth: int
    as_of: datetime | None = None
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    truncated: bool = False
    not_in_graph: int = 0

    def _repr_svg_(self) -> str:
        """How a notebook shows it."""
        return _in_notebook("graph_svg", self)


class Imported(Value, frozen=True, kw_only=True):
    """What an import did, line by line counted; `errors` name the line."""

    stored: int
    unchanged: int
    updated: int
    kept: int
    links: int
    errors: tuple[str, ...] = ()
    redacted: Mapping[str, int] = {}


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


class Proposal(Value, frozen=True, kw_only=True):
    """A statement worth keeping that waits for its owner to decide.

    `memory` is the one that an update or a supersession is about; `stored` the one that an accepted proposal became.
    """

    id: str
    content: str
    kind: ProposalKind
    reason: str
    action: ProposalAction = "add"
    memory: str | None = None
    category: str = "facts"
    tags: tuple[str, ...] = ()
    scope: str = "default"
    source: str | None = None
    state: ProposalState = "waiting"
    created_at: datetime
    decided_at: datetime | None = None
    stored: str | None = None
    curated_at: datetime | None = None
    owner: str = LOCAL


class ProposalPage(Value, frozen=True, kw_only=True):
    """One page of an inbox and the total behind it."""

    proposals: tuple[Proposal, ...]
    total: int
    offset: int


class Proposed(Value, frozen=True, kw_only=True):
    """The outcome of proposing: it waits, or the same is stored, waits already, or was rejected before."""

    status: Literal["waiting", "stored already", "waits already", "rejected before"]
    id: str | None = None
    same_as: str | None = None
    redacted: Mapping[str, int] = {}


class Usage(Value, frozen=True, kw_only=True):
    """How often recall showed a memory, when it last did, and how often callers rated it useful or not."""

    id: str
    shown: int = 0
    last_shown: datetime | None = None
    useful: int = 0
    not_useful: int = 0


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


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    """An encrypted secret of a memory: kind and number name it in the text, revision and field say where it was."""

    revision: int
    field: str
    kind: str
    number: int
    key: str
    nonce: bytes
    sealed: bytes


def _in_notebook(name: str, value: Value) -> str:
    """What a notebook shows is made where all layers can be used, and loaded when it is asked for."""
    from importlib import import_module

    shown: str = getattr(import_module("trivet.notebook"), name)(value)
    return shown
