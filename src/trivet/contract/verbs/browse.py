"""Looking closely at a memory, and over all of them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from trivet.contract.fields import ConceptText, Id, MaxCount, Offset, PageSize, Reveal, SourceText, UtcOffset
from trivet.contract.verb import Request, Route, Tool, verb
from trivet.contract.verbs.memories import Recall, Selection
from trivet.types import (
    AuditEntry,
    ConceptKind,
    ConceptPage,
    ConceptSort,
    Count,
    Memory,
    Neighbourhood,
    Revision,
    WhyNot,
)


@verb(
    "reveal",
    "trivet.memory.sealed_secrets:reveal",
    needs="reveal",
    idempotent=False,
    secret_answer=True,
    routes=(Route("POST", "/v1/memories/{id}/reveal"),),
)
class RevealRequest(Request[Memory], frozen=True, kw_only=True):
    """Show one memory with its secrets and private parts, which is written to the audit record."""

    id: Id


@verb("history", "trivet.memory.lifecycle:history", needs="read", routes=(Route("GET", "/v1/memories/{id}/history"),))
class History(Request[tuple[Revision, ...]], frozen=True, kw_only=True):
    """Show every revision of a memory, oldest first."""

    id: Id
    reveal: Reveal = False


@verb(
    "why_not",
    "trivet.memory.answer.why_not:why_not",
    needs="read",
    routes=(Route("POST", "/v1/why-not"),),
    tool=Tool(
        "memory_why",
        "Why not recalled",
        "Use it when memory_recall did not return a memory you know the id of; give the same arguments and the id.",
        rare=frozenset(Recall.__struct_fields__) - {"query", "reveal"},
        described_elsewhere=frozenset((*Recall.__struct_fields__, "id")),
        elsewhere="As in memory_recall",
    ),
)
class WhyNotRequest(Recall, Request[WhyNot], frozen=True, kw_only=True):
    """Explain why a memory did not come back for a query, or where it came."""

    id: Id


@verb(
    "concepts",
    "trivet.memory.browse:concepts",
    needs="read",
    routes=(Route("GET", "/v1/concepts"),),
    positional=("text",),
)
class ConceptsRequest(Selection, Request[ConceptPage], frozen=True, kw_only=True):
    """List the concepts that memories mention, those mentioned most first."""

    text: Annotated[ConceptText | None, Meta(description="Only concepts with this in their name; all if none.")] = None
    kind: Annotated[ConceptKind | None, Meta(description="Only concepts of this kind.")] = None
    sort: Annotated[ConceptSort, Meta(description="Order: by the number of memories, or by name.")] = "memories"
    limit: PageSize = 50
    offset: Offset = 0


@verb("graph", "trivet.memory.browse:graph", needs="read", routes=(Route("GET", "/v1/graph"),))
class GraphRequest(Selection, Request[Neighbourhood], frozen=True, kw_only=True):
    """Show what a memory or a concept is connected with, and how."""

    start: Annotated[str, Meta(min_length=1, max_length=200, description="A memory's id, or a concept in any writing.")]
    depth: Annotated[int, Meta(ge=1, le=4, description="How many steps to go from there.")] = 2
    limit: Annotated[int, Meta(ge=2, le=500, description="How many memories and concepts to show at most.")] = 40


@verb("tags", "trivet.memory.browse:tags", needs="read", routes=(Route("GET", "/v1/tags"),))
class TagsRequest(Selection, Request[tuple[Count, ...]], frozen=True, kw_only=True):
    """Count the memories of each tag, the most used first."""

    limit: MaxCount = 100


@verb("categories", "trivet.memory.browse:categories", needs="read", routes=(Route("GET", "/v1/categories"),))
class CategoriesRequest(Selection, Request[tuple[Count, ...]], frozen=True, kw_only=True):
    """Count the memories of each category, those without any included."""


@verb("sources", "trivet.memory.browse:sources", needs="read", routes=(Route("GET", "/v1/sources"),))
class SourcesRequest(Selection, Request[tuple[Count, ...]], frozen=True, kw_only=True):
    """Count the memories of each source (a file, a conversation, an address), those with most first."""

    text: Annotated[SourceText | None, Meta(description="Only sources with this in their name; all if none.")] = None
    limit: MaxCount = 100


@verb("days", "trivet.memory.browse:days", needs="read", routes=(Route("GET", "/v1/days"),))
class DaysRequest(Selection, Request[tuple[Count, ...]], frozen=True, kw_only=True):
    """Count the memories created on each day that has any, the newest day first."""

    utc_offset: UtcOffset = 0
    limit: MaxCount = 366


@verb("audit", "trivet.memory.sealed_secrets:audit", needs="read", routes=(Route("GET", "/v1/audit"),))
class AuditRequest(Request[tuple[AuditEntry, ...]], frozen=True, kw_only=True):
    """Show who did what, the latest first: your own acts, or everybody's if you have the store."""

    limit: MaxCount = 50
