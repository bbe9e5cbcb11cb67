"""Values of memories, links, revisions, imports and proposals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

import msgspec

State = Literal["active", "superseded", "archived", "deleted"]


# The owner of memories stored without a server.
LOCAL = "local"


LinkKind = Literal["supersedes", "resolved-by", "part-of", "see-also"]


# Why a proposal is worth keeping, what accepting it does, and its state.
ProposalKind = Literal["asked", "decision", "preference", "correction", "workaround", "told"]


ProposalAction = Literal["add", "update", "supersede", "nothing"]


ProposalState = Literal["waiting", "accepted", "rejected"]


Usefulness = Literal["useful", "not-useful"]


# Called by long operations with the number of items done since the last call.
Progress = Callable[[int], None]


class Value(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Base of all values: immutable, compared by content, convertible to and from JSON.

    Values form no cycles, so the garbage collector need not track a recall's hundreds.
    """


class Source(Value, frozen=True, kw_only=True):
    """The origin of a memory: a URI or path and, for files, the lines."""

    uri: str
    start_line: int | None = None
    end_line: int | None = None


class Memory(Value, frozen=True, kw_only=True):
    """One self-contained text with its metadata.

    Times are in UTC: datetimes in Python, ISO 8601 in JSON.
    """

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
    """A typed link between two memories, read as a sentence: `source` supersedes `target`."""

    kind: LinkKind
    source: str
    target: str
    created_at: datetime


class Revision(Value, frozen=True, kw_only=True):
    """A memory at one point in its history, and the action that created this revision."""

    revision: int
    changed_at: datetime
    action: str
    memory: Memory


class Filter(Value, frozen=True, kw_only=True):
    """The memories that a read may see, part of every leg's query. Times are stamps."""

    scope: str | None = None
    categories: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    states: tuple[State, ...] = ("active", "superseded")
    source: str | None = None
    created_after: str | None = None
    created_before: str | None = None
    as_of: str | None = None
    viewer: str | None = None  # a server's user: sees own memories and those shared with them


class Duplicate(Value, frozen=True, kw_only=True):
    """A stored memory that says nearly the same as one just saved. Nothing was merged."""

    id: str
    similarity: float
    content: str


class PossibleUpdate(Value, frozen=True, kw_only=True):
    """A stored memory that the new one may update; `why` is the evidence. Nothing was linked."""

    id: str
    content: str
    why: str
    probability: float


class Remembered(Value, frozen=True, kw_only=True):
    """The result of `remember`; `unchanged` if the same id and content were stored before.

    `may_update` lists memories to link with supersedes if they are replaced. `redacted` counts
    secrets replaced by placeholders, by kind.
    """

    id: str
    status: Literal["stored", "unchanged"]
    revision: int
    near_duplicates: tuple[Duplicate, ...] = ()
    may_update: tuple[PossibleUpdate, ...] = ()
    redacted: Mapping[str, int] = {}


class Page(Value, frozen=True, kw_only=True):
    """One page of a listing and the total count."""

    memories: tuple[Memory, ...]
    total: int
    offset: int


class Imported(Value, frozen=True, kw_only=True):
    """The counts of an import; each of the `errors` names its line."""

    stored: int
    unchanged: int
    updated: int
    kept: int
    links: int
    errors: tuple[str, ...] = ()
    redacted: Mapping[str, int] = {}


class Proposal(Value, frozen=True, kw_only=True):
    """A statement worth keeping that waits for its owner's decision.

    `memory` is the one to update or supersede; `stored` is what an accepted proposal became.
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
    """One page of an inbox and the total count."""

    proposals: tuple[Proposal, ...]
    total: int
    offset: int


class Proposed(Value, frozen=True, kw_only=True):
    """The outcome of a proposal: waiting, or already stored, waiting or rejected."""

    status: Literal["waiting", "stored already", "waits already", "rejected before"]
    id: str | None = None
    same_as: str | None = None
    redacted: Mapping[str, int] = {}


class Usage(Value, frozen=True, kw_only=True):
    """How often recall returned a memory, when it last did, and how callers rated it."""

    id: str
    shown: int = 0
    last_shown: datetime | None = None
    useful: int = 0
    not_useful: int = 0


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    """An encrypted secret; kind and number name it in the text, revision and field locate it."""

    revision: int
    field: str
    kind: str
    number: int
    key: str
    nonce: bytes
    sealed: bytes


_notebook_renderer: Callable[[str, Value], str] | None = None


def set_notebook_renderer(renderer: Callable[[str, Value], str]) -> None:
    """Register the function that renders a value for Jupyter and IPython."""
    global _notebook_renderer
    _notebook_renderer = renderer


def render_in_notebook(kind: str, value: Value) -> str | None:
    """Return a notebook's view of the value, or None without a registered renderer."""
    return None if _notebook_renderer is None else _notebook_renderer(kind, value)
