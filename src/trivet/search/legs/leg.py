"""What a leg is: one way to retrieve, and everything that the rest of Trivet needs to know about it.

A new leg is a file beside this one and a line in `registry.py`. Recipe, recall, trace, why-not, reranking, relevance,
lab and tune ask the registry and name no leg themselves.
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

# What can be measured of a memory in the ranking of a leg; search/relevance/features.py says how.
Measure = Literal["score", "log_score", "normalised", "place", "gap", "silent", "best"]


@dataclass(frozen=True, slots=True)
class LegQuery:
    """What a leg gets to search with.

    `rankings` are those of the legs that ran before it, `prepared` what legs have found out already, by their names.
    """

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
    """One way to retrieve.

    `search` returns at most `recipe.depth` candidates, best first, none below `floor`; any exception it raises is
    reported as the health of this leg alone. A leg that fuses badly with others, is slow or fails costs only itself.
    """

    name: str
    search: Callable[[LegQuery], Ranking]
    # The least score that `search` can give. Fusion takes it for a memory that the leg did not return.
    floor: float
    # It starts from what the other legs found, so it runs when they have answered.
    after_others: bool = False
    # Whether it runs in the caller's thread while the others run in theirs: for a leg that cannot hang.
    in_callers_thread: Callable[[LegQuery], bool] = never
    # What it can find out before the legs that it waits for have answered, put into `prepared`. None: nothing.
    prepare: Callable[[LegQuery], Any] | None = None
    # It compares vectors, so it does not run without an embedder.
    needs_embedder: bool = False
    # It scores a memory by its own text, as a reranker does. Where it does not, reranking leaves its part alone.
    reads_text: bool = True
    # A memory that holds the query word for word is always among its hits.
    finds_exact_matches: bool = False
    # How much its order counts when a walk through the graph chooses where to start; 0: not at all.
    trust: float = 0.0
    # The steps of a recipe that change what it finds, by the names of Recipe's fields. The lab keeps rankings by them.
    steps: tuple[str, ...] = ()
    # The numbers that the model of relevance may use, by the names it knows them by, and how its scores are normalised
    # for them: as the default fusion does it.
    features: Mapping[str, Measure] = field(default_factory=dict)
    norm: Literal["spread", "raw"] = "spread"
    # What its scores are measured in, for the axis of a plot.
    unit: str = "its own unit"
    # What it adds to the line that tells why a memory was found, such as "cosine 0.41".
    told: Callable[[Contribution, Why], str] = lambda part, why: ""
    # The way it came to each of these memories, where it has one to show.
    paths: Callable[[LegQuery, Ranking, Sequence[str]], Mapping[str, tuple[PathStep, ...]]] = (
        _no_paths
    )
    # Why it has no hits at all, where it knows more than that: for `why_not`.
    no_hits_reason: Callable[[LegQuery, Ranking], str | None] = lambda query, ranking: None
    # What a caller should know about its state: a note in the health of the answer.
    note: Callable[[Store], str | None] = lambda store: None

    # Why it is not worth asking now, where it knows: then it is left out at once, and with this reason.
    resting: Callable[[LegQuery], str | None] = lambda query: None
    # Told when it did not answer in time, so that the next recall need not wait as well.
    late: Callable[[LegQuery], None] = lambda query: None

    def cache_key(self, recipe: Recipe) -> tuple[object, ...]:
        """Recipes with equal keys get the same ranking from this leg, the depth aside."""
        return tuple(getattr(recipe, step) for step in self.steps)


_legs: tuple[Leg, ...] = ()


def legs() -> tuple[Leg, ...]:
    return _legs


def leg_names() -> tuple[str, ...]:
    return tuple(leg.name for leg in _legs)


def leg_named(name: str) -> Leg | None:
    """None for what stands in a trace beside the legs: another system, a reranker, rewrites of the query."""
    return next((leg for leg in _legs if leg.name == name), None)


def register(leg: Leg) -> None:
    """Adds a leg behind the others. A recipe runs it once it names it: `legs(lexical, NAME)`."""
    global _legs
    if leg_named(leg.name) is not None:
        raise InvalidInput(f"there is a leg {leg.name!r} already; choose another name")
    _legs = (*_legs, leg)


def unregister(name: str) -> None:
    global _legs
    _legs = tuple(leg for leg in _legs if leg.name != name)
