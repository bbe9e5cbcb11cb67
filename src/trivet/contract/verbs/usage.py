"""What was useful, and how large the store is."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from trivet.contract.fields import Id, Query
from trivet.contract.verb import Request, Route, Tool, verb
from trivet.types import Stats, Usage, Usefulness


@verb(
    "feedback",
    "trivet.memory.feedback:feedback",
    atomic=True,
    routes=(Route("PUT", "/v1/memories/{id}/feedback"),),
    tool=Tool(
        "memory_feedback",
        "Say what helped",
        "Use it after memory_recall, with the same query: useful for what helped, not-useful for what misled.",
        told_elsewhere=frozenset(("id",)),
    ),
)
class FeedbackRequest(Request[Usage], frozen=True, kw_only=True):
    """Say whether a memory that came was useful. It is kept for tuning and changes no rank."""

    id: Id
    verdict: Annotated[Usefulness, Meta(description="Whether it helped: useful or not-useful.")]
    query: Annotated[Query | None, Meta(description="What was asked when it came; then `trivet tune` can use it.")] = (
        None
    )


@verb("usage", "trivet.memory.feedback:usage", needs="read", routes=(Route("GET", "/v1/memories/{id}/usage"),))
class UsageRequest(Request[Usage], frozen=True, kw_only=True):
    """Show how often recall showed a memory, and what was said of it."""

    id: Id


@verb(
    "stats",
    "trivet.memory.owner:count",
    needs="read",
    routes=(Route("GET", "/v1/stats"),),
    tool=Tool("memory_stats", "Count memories", "Use it to see which scopes, categories and tags are in use."),
)
class StatsRequest(Request[Stats], frozen=True, kw_only=True):
    """Count what the store holds and the work waiting."""
