"""The state of the machinery, told with every answer."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.memory.engine import Engine
from trivet.store.records import Backlog, Model
from trivet.types import Filter, Health, LegHealth

# A provider's error page must not fill the agent's context.
LONGEST_ERROR = 300


def health_of(
    engine: Engine, models: Sequence[Model], filter: Filter, legs: Sequence[LegHealth], notes: Sequence[str]
) -> Health:
    serving = next((model for model in models if model.serving), None)
    filling = next((model for model in models if not model.serving), None)
    memories = engine.store.memories.visible_count(filter)
    backlog, not_in_graph = _backlog(engine, serving, memories)
    said = list(notes)
    if engine.embedding.enabled and engine.embedding.identity not in {model.identity for model in models}:
        said.append(f"{engine.embedding.identity} has not answered yet; `trivet doctor` tells why")
    if filling is not None:
        waiting = engine.store.jobs.backlog(filling).waiting
        said.append(f"moving to {filling.identity}: {waiting} memories to go; the old vectors answer meanwhile")
    if any(leg.leg == "graph" for leg in legs) and engine.store.graph.behind():
        said.append("the graph is being loaded anew after many changes; this answer walked the one of before")
    return Health(
        degraded=any(not leg.answered for leg in legs),
        legs=tuple(legs),
        embedder=serving.identity if serving else engine.embedding.identity,
        memories=memories,
        not_embedded=backlog.waiting,
        failing_jobs=backlog.failing,
        not_in_graph=not_in_graph,
        last_error=(backlog.last_error or engine.worker.last_error or "")[:LONGEST_ERROR] or None,
        notes=tuple(said),
    )


def _backlog(engine: Engine, serving: Model | None, memories: int) -> tuple[Backlog, int]:
    """What waits to be embedded, and how many memories wait to be read."""
    if serving is not None:
        return engine.store.jobs.backlog_with_readings(serving)
    waiting = engine.store.graph.backlog("rules").waiting
    return Backlog(memories if engine.embedding.enabled else 0, 0, None), waiting
