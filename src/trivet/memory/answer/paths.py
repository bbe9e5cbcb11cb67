"""By what way the graph reached each hit that it put forward."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from trivet.graph.walk import Walk
from trivet.memory.answer.weigh import Weighed
from trivet.store.records import Seeds
from trivet.types import Filter, PathStep

if TYPE_CHECKING:
    from trivet.store import Store


def paths_to(
    store: Store, chosen: Sequence[Weighed], seeds: Seeds | None, filter: Filter, walk: Walk
) -> Mapping[str, tuple[PathStep, ...]]:
    """By the id of the memory that was found; where its successor is served instead, the way leads over it."""
    reached = [hit for hit in chosen if _by_graph(hit)]
    if seeds is None or not reached:
        return {}
    paths = store.graph.paths([hit.fused.id for hit in reached], seeds, filter, walk)
    return {
        hit.fused.id: (*path, PathStep(kind="memory", name=hit.fused.id)) if hit.memory.id != hit.fused.id else path
        for hit in reached
        if (path := paths.get(hit.fused.id))
    }


def _by_graph(hit: Weighed) -> bool:
    return any(part.leg == "graph" and part.rank is not None for part in hit.fused.contributions)
