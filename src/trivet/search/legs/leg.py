"""The definition of a leg, and the table of legs.

A new leg is a file in this folder and a line in `registry.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from trivet.errors import InvalidInput
from trivet.types import Contribution, PathStep, Ranking, Why

if TYPE_CHECKING:
    from trivet.analyse import Question
    from trivet.search.embedding import Embedding
    from trivet.search.recipe import Recipe
    from trivet.store import Store
    from trivet.types import Filter

# Defined in search/relevance_features.py.
Measure = Literal["score", "log_score", "normalised", "place", "gap", "silent", "best"]


@dataclass(frozen=True, slots=True)
class LegQuery:
    store: Store
    embedding: Embedding
    question: Question
    filter: Filter
    recipe: Recipe
    rankings: Sequence[Ranking] = ()
    prepared: Mapping[str, Any] = field(default_factory=dict)


def always(query: LegQuery) -> bool:
    return True


def never(query: LegQuery) -> bool:
    return False


def _no_paths(
    query: LegQuery, ranking: Ranking, ids: Sequence[str]
) -> Mapping[str, tuple[PathStep, ...]]:
    return {}


@dataclass(frozen=True, kw_only=True)
class Leg:
    """One retrieval method; its exceptions are reported as its health.

    `search` returns at most `recipe.depth` candidates, best first, none below `floor`.
    """

    name: str
    search: Callable[[LegQuery], Ranking]
    # The lowest possible score, which fusion gives to memories not returned.
    floor: float
    # Runs after the other legs and starts from their hits.
    after_others: bool = False
    # Run in the caller's thread while others run in theirs; only for legs that cannot hang.
    in_callers_thread: Callable[[LegQuery], bool] = never
    # Work done while waiting for other legs; its result goes to `prepared`.
    prepare: Callable[[LegQuery], Any] | None = None
    needs_embedder: bool = False
    # Whether it scores the memory's own text, as a reranker does; if not, reranking keeps the leg's
    # part.
    reads_text: bool = True
    finds_exact_matches: bool = False
    # Weight of its order when a graph walk chooses its start.
    trust: float = 0.0
    # Recipe fields that change its results, for the lab's cache.
    steps: tuple[str, ...] = ()
    # Features for the relevance model, and the normalization they use.
    features: Mapping[str, Measure] = field(default_factory=dict)
    norm: Literal["spread", "raw"] = "spread"
    # Unit of its scores, for the axis of a plot.
    unit: str = "its own unit"
    # Text that explains a hit, such as "cosine 0.41".
    explain: Callable[[Contribution, Why], str] = lambda part, why: ""
    paths: Callable[[LegQuery, Ranking, Sequence[str]], Mapping[str, tuple[PathStep, ...]]] = (
        _no_paths
    )
    # A specific reason for having no hits, for `why_not`.
    no_hits_reason: Callable[[LegQuery, Ranking], str | None] = lambda query, ranking: None
    # A note for the health of the answer.
    note: Callable[[Store], str | None] = lambda store: None

    # Reason to skip it now.
    resting: Callable[[LegQuery], str | None] = lambda query: None
    # Called after a timeout, so that the next recall need not wait.
    late: Callable[[LegQuery], None] = lambda query: None

    def cache_key(self, recipe: Recipe) -> tuple[object, ...]:
        """Return a key; equal keys mean equal rankings, apart from depth."""
        return tuple(getattr(recipe, step) for step in self.steps)


_legs: tuple[Leg, ...] = ()


def legs() -> tuple[Leg, ...]:
    return _legs


def leg_names() -> tuple[str, ...]:
    return tuple(leg.name for leg in _legs)


def leg_named(name: str) -> Leg | None:
    """Return the leg, or None for another trace entry such as a reranker."""
    return next((leg for leg in _legs if leg.name == name), None)


def register(leg: Leg) -> None:
    global _legs
    if leg_named(leg.name) is not None:
        raise InvalidInput(f"leg {leg.name!r} already exists; choose another name")
    _legs = (*_legs, leg)


def unregister(name: str) -> None:
    global _legs
    _legs = tuple(leg for leg in _legs if leg.name != name)
