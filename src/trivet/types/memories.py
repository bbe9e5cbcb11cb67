"""Values of memories, their links, revisions and proposals."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

import msgspec

State = Literal["active", "superseded", "archived", "deleted"]


# The owner of memories that were stored without a server.
LOCAL = "local"


LinkKind = Literal["supersedes", "resolved-by", "part-of", "see-also"]


# Why a proposal is worth keeping, what accepting it does, and what the user decided.
ProposalKind = Literal["asked", "decision", "preference", "correction", "workaround", "told"]


ProposalAction = Literal["add", "update", "supersede", "nothing"]


ProposalState = Literal["waiting", "accepted", "rejected"]


Usefulness = Literal["useful", "not-useful"]


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
    viewer: str | None = (
        None  # a user of a server, who sees their own memories and those shared with them
    )


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


class Page(Value, frozen=True, kw_only=True):
    """One page of a listing and the total behind it."""

    memories: tuple[Memory, ...]
    total: int
    offset: int


class Imported(Value, frozen=True, kw_only=True):
    """What an import did, line by line counted; `errors` name the line."""

    stored: int
    unchanged: int
    updated: int
    kept: int
    links: int
    errors: tuple[str, ...] = ()
    redacted: Mapping[str, int] = {}


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


class Sealed(msgspec.Struct, frozen=True, kw_only=True):
    """An encrypted secret of a memory: kind and number name it in the text, revision and field say where it was."""

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
    """Return what a notebook shows for the value, or None where no renderer is registered."""
    return None if _notebook_renderer is None else _notebook_renderer(kind, value)
