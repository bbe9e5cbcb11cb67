"""The filters of what looks at many memories, and what recall and why_not share."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from trivet.contract.fields import Budget, Category, Limit, Query, RecipeText, Reveal, Scope, SourceUri, Tags, Time
from trivet.contract.verb import Parameters
from trivet.types import Rerank, Sort, State


class Selection(Parameters, frozen=True, kw_only=True):
    """The filters of everything that looks at many memories: recall, list, graph, tags, sources and the like."""

    scope: Annotated[Scope | None, Meta(description="Only this scope and those below it.")] = None
    category: Annotated[tuple[Category, ...], Meta(description="Only these categories.")] = ()
    tags: Annotated[Tags, Meta(description="Only memories that carry all of these tags.")] = ()
    state: Annotated[
        tuple[State, ...],
        Meta(description="Only these states; active and superseded if none (a superseded one leads to its successor)."),
    ] = ()
    source: Annotated[SourceUri | None, Meta(description="Only this source (or below it, if it ends with /).")] = None
    created_after: Annotated[
        Time | None, Meta(description="Only those created at or after: 2026-11-03, 2026-11, 7d, yesterday.")
    ] = None
    created_before: Annotated[
        Time | None, Meta(description="Only those created before: 2026-11-03, 2026-11, 7d, today.")
    ] = None
    as_of: Annotated[Time | None, Meta(description="Only what was true at that time (2026-11, 7d); now if none.")] = (
        None
    )


class Recall(Selection, frozen=True, kw_only=True):
    """What recall and why_not share: the query and how to answer it."""

    query: Query
    limit: Limit = 10
    sort: Annotated[Sort, Meta(description="Order of the answer: relevance, importance or recency.")] = "relevance"
    minimum_score: Annotated[float, Meta(ge=0, le=1, description="Leave out hits scored below this, 0 to 1.")] = 0.0
    relevance_at_least: Annotated[
        Annotated[float, Meta(ge=0, le=1)] | None,
        Meta(
            description="Only hits that are at least so likely to be relevant; 0 shows every candidate. If none, as "
            "configured: the best candidates without the noise behind them."
        ),
    ] = None
    token_budget: Annotated[Budget | None, Meta(description="Stop before contents exceed about so many tokens.")] = None
    per_source: Annotated[Limit | None, Meta(description="At most so many hits from one source.")] = None
    collapse: Annotated[bool, Meta(description="Fold hits that say the same into the best of them.")] = True
    reveal: Reveal = False
    recipe: Annotated[
        RecipeText | None,
        Meta(description="How to retrieve, such as 'rrf(k=60) | depth(50)'; the configured one if none."),
    ] = None
    expand: Annotated[
        bool | None,
        Meta(description="Where the answer is unsure, ask the query's parts or rewrites too; as configured if none."),
    ] = None
    rerank: Annotated[
        Rerank | None,
        Meta(description="A second look at the best candidates: off, auto, fast or best; as configured if none."),
    ] = None
