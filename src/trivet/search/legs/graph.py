"""The graph leg: a walk from the query's concepts and the best hits of the other legs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trivet.search.legs.leg import Leg, LegQuery, always
from trivet.types import Contribution, PathStep, Ranking, Why

if TYPE_CHECKING:
    from trivet.store import Store
    from trivet.store.records import WalkSeeds

NAME = "graph"
FLOOR = 0.0
# Ids of the same minute share their start, so paths show both ends.
FIRST_OF_ID, LAST_OF_ID = 8, 4


class Walked(Ranking, frozen=True):
    seeds: WalkSeeds | None = None


def _named(query: LegQuery) -> dict[int, float]:
    # Loads parsers that a command that only prints does not need.
    from trivet.search.legs.graph_seeds import named_concepts

    return named_concepts(query)


def _search(query: LegQuery) -> Ranking:
    from trivet.search.legs.graph_seeds import graph_seeds

    seeds = graph_seeds(query, query.prepared[NAME] if NAME in query.prepared else _named(query))
    if seeds is None:
        return Walked(leg=NAME, floor=FLOOR)
    found = query.store.graph.walk(seeds, query.filter, query.recipe.walk, query.recipe.depth)
    return Walked(leg=NAME, floor=FLOOR, candidates=tuple(found), seeds=seeds)


def _paths(
    query: LegQuery, ranking: Ranking, ids: Sequence[str]
) -> Mapping[str, tuple[PathStep, ...]]:
    if not isinstance(ranking, Walked) or ranking.seeds is None:
        return {}
    return query.store.graph.paths(ids, ranking.seeds, query.filter, query.recipe.walk)


def _no_hits_reason(query: LegQuery, ranking: Ranking) -> str | None:
    if isinstance(ranking, Walked) and ranking.seeds is not None:
        return None
    if _named(query):
        return "the query names concepts, but no hit of the other legs stands out as a start"
    return "the query names no concept the graph knows"


def _explain(part: Contribution, why: Why) -> str:
    """Format a path: query -> Acme -> #0199c2f4…1a2b -> Berlin -> this."""
    return " -> ".join(("query", *map(_stop, why.path), "this")) if why.path else ""


def _stop(step: PathStep) -> str:
    return (
        f"#{step.name[:FIRST_OF_ID]}…{step.name[-LAST_OF_ID:]}"
        if step.kind == "memory"
        else step.name
    )


def _note(store: Store) -> str | None:
    if store.graph.behind():
        return "the graph is being reloaded after many changes; this answer used the previous one"
    return None


GRAPH = Leg(
    name=NAME,
    search=_search,
    floor=FLOOR,
    after_others=True,
    in_callers_thread=always,  # it runs last, with nothing in parallel
    prepare=_named,
    reads_text=False,
    steps=("walk", "bm25"),  # the certainty of a name depends on how many memories hold its words
    features={f"{NAME}_raw": "normalised", f"{NAME}_rank": "place"},
    norm="raw",
    explain=_explain,
    paths=_paths,
    no_hits_reason=_no_hits_reason,
    note=_note,
)
