"""Presenting an answer: hits with passages, reasons and masks within the token budget, and health.

A server's user sees only coarse times: exact ones would reveal which words others have stored.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from trivet.memory.answer.decision import Decision, ScoredCandidate
from trivet.memory.engine import Engine
from trivet.memory.passages import best_excerpts, best_passages, estimate_tokens
from trivet.search.legs.leg import LegQuery
from trivet.search.legs.registry import leg_named
from trivet.search.relevance import strength
from trivet.secrets.masking import masked
from trivet.store.records import Backlog, Model
from trivet.types import Answer, Filter, Health, Hit, PathStep, Resolution, Why

if TYPE_CHECKING:
    from trivet.store import Store


# Bounds a provider's error page, which must not fill the agent's context.
LONGEST_ERROR = 300

Path = tuple[PathStep, ...]


def present(
    engine: Engine,
    decision: Decision,
    chosen: Sequence[ScoredCandidate],
    model: Model | None,
    reveal: bool,
    budget: int | None,
) -> tuple[tuple[Hit, ...], bool]:
    store, filter = engine.store, decision.filter
    wording = decision.pool.evidence[0].wording
    wording.look_up(hit.memory.id for hit in chosen)
    paths = _paths(engine, decision, chosen)
    shown = [masked(hit.memory, reveal, filter.viewer) for hit in chosen]
    passages = best_excerpts(
        store, model, shown, best_passages(decision.retrieved.rankings), decision.question
    )
    conflicts = store.branches.waiting([hit.memory.id for hit in chosen])
    resolutions = _resolutions(store, [hit.memory.id for hit in chosen], filter, reveal)
    hits = []
    for rank, (hit, memory) in enumerate(zip(chosen, shown, strict=True), 1):
        (passage,) = passages[memory.id]
        hits.append(
            Hit(
                **msgspec.structs.asdict(memory),
                passage=passage,
                score=round(min(1.0, hit.score), 6),
                rank=rank,
                why=_why(
                    wording.words_matched_by(hit.memory),
                    hit,
                    paths.get(hit.fused.id, ()),
                    conflicts.get(memory.id, ()),
                ),
                relevance=hit.relevance,
                strength=strength(hit.relevance),
                resolved_by=resolutions.get(memory.id, ()),
            )
        )
    return _within_budget(hits, budget)


def _paths(
    engine: Engine, decision: Decision, chosen: Sequence[ScoredCandidate]
) -> Mapping[str, Path]:
    query = LegQuery(
        engine.store, engine.embedding, decision.question, decision.filter, decision.recipe
    )
    paths: dict[str, Path] = {}
    for ranking in decision.retrieved.rankings:
        leg = leg_named(ranking.leg)
        reached = [hit.fused.id for hit in chosen if leg and _found_by(leg.name, hit)]
        if leg is not None and reached:
            paths.update(leg.paths(query, ranking, reached))
    for hit in chosen:
        if hit.memory.id != hit.fused.id and (path := paths.get(hit.fused.id)):
            paths[hit.fused.id] = (*path, PathStep(kind="memory", name=hit.fused.id))
    return paths


def _found_by(leg: str, hit: ScoredCandidate) -> bool:
    return any(part.leg == leg and part.rank is not None for part in hit.fused.contributions)


def _within_budget(hits: Sequence[Hit], budget: int | None) -> tuple[tuple[Hit, ...], bool]:
    if budget is None:
        return tuple(hits), False
    kept: list[Hit] = []
    left, cut_short = budget, False
    for hit in hits:
        if estimate_tokens(hit.content) > left:
            hit, cut_short = _shortened(hit), True
        if estimate_tokens(hit.content) > left:
            return tuple(kept), True
        left -= estimate_tokens(hit.content)
        kept.append(hit)
    return tuple(kept), cut_short


def _shortened(hit: Hit) -> Hit:
    return msgspec.structs.replace(hit, content=hit.passage)


def _why(
    matched: Sequence[str], hit: ScoredCandidate, path: Path, conflicts: tuple[str, ...]
) -> Why:
    return Why(
        legs={contribution.leg: contribution for contribution in hit.fused.contributions},
        matched_words=tuple(matched),
        fused=round(hit.fused.score, 6),
        exactness=round(hit.exactness, 3),
        bonus=round(hit.bonus, 6),
        prior=round(hit.prior, 6),
        rerank=hit.fused.rerank,
        blended=None if hit.fused.blended is None else round(hit.fused.blended, 6),
        redirected_from=hit.redirected_from,
        collapsed=hit.collapsed,
        yields_to=hit.yields_to,
        path=path,
        time=hit.time,
        time_factor=round(hit.time_factor, 6),
        older_than=hit.older_than,
        conflicts=conflicts,
        newer_than=hit.newer_than,
    )


def _resolutions(
    store: Store, ids: Sequence[str], filter: Filter, reveal: bool
) -> Mapping[str, tuple[Resolution, ...]]:
    links = store.links.from_sources(ids, "resolved-by") if ids else ()
    if not links:
        return {}
    within = Filter(
        scope=filter.scope, states=("active", "superseded", "archived"), viewer=filter.viewer
    )
    memories = store.memories.get_many([link.target for link in links])
    found: dict[str, list[Resolution]] = {}
    for link in links:
        if store.memories.is_visible(link.target, within):
            memory = masked(memories[link.target], reveal, filter.viewer)
            found.setdefault(link.source, []).append(
                Resolution(id=memory.id, content=memory.content)
            )
    return {id: tuple(resolutions) for id, resolutions in found.items()}


def health_of(engine: Engine, models: Sequence[Model], decision: Decision) -> Health:
    serving = next((model for model in models if model.serving), None)
    filling = next((model for model in models if not model.serving), None)
    memories = engine.store.memories.visible_count(decision.filter)
    backlog, not_in_graph = _backlog(engine, serving, memories)
    legs, notes = decision.pool.health, list(decision.pool.notes)
    if engine.embedding.enabled and not models:
        notes.append(f"{engine.embedding.identity} has not answered yet; `trivet doctor` tells why")
    if (difference := engine.embedding.difference()) is not None:
        notes.append(difference)
    if filling is not None:
        waiting = engine.store.jobs.backlog_for_answer(filling)[0].waiting
        notes.append(
            f"moving to {filling.identity}: {waiting} memories left; the old vectors are "
            "used meanwhile"
        )
    known = [leg for health in legs if (leg := leg_named(health.leg)) is not None]
    notes += [note for leg in known if (note := leg.note(engine.store)) is not None]
    return Health(
        degraded=any(not leg.answered for leg in legs),
        legs=tuple(legs),
        embedder=serving.identity if serving else engine.embedding.identity,
        memories=memories,
        not_embedded=backlog.waiting,
        failing_jobs=backlog.failing,
        not_in_graph=not_in_graph,
        last_error=engine.error_for_caller(
            (backlog.last_error or engine.worker.last_error or "")[:LONGEST_ERROR]
        ),
        notes=tuple(notes),
    )


def _backlog(engine: Engine, serving: Model | None, memories: int) -> tuple[Backlog, int]:
    if serving is not None:
        return engine.store.jobs.backlog_for_answer(serving)
    waiting = engine.store.graph.backlog("rules").waiting
    return Backlog(memories if engine.embedding.enabled else 0, 0, None), waiting


# Far above the cost of finding a word, far below what people notice.
COARSE_STEP_MS = 50.0


def coarsen_times(answer: Answer) -> Answer:
    """Round the total up and its parts down, mostly to 0."""
    legs = tuple(
        msgspec.structs.replace(leg, took_ms=_round_down(leg.took_ms)) for leg in answer.health.legs
    )
    return msgspec.structs.replace(
        answer,
        took_ms=math.ceil(answer.took_ms / COARSE_STEP_MS) * COARSE_STEP_MS,
        stages_ms={name: _round_down(took) for name, took in answer.stages_ms.items()},
        health=msgspec.structs.replace(answer.health, legs=legs),
    )


def _round_down(milliseconds: float) -> float:
    return milliseconds // COARSE_STEP_MS * COARSE_STEP_MS
