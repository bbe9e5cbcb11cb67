"""Why a memory did not come back: the recall is run again with open eyes, and its trail is read."""

from __future__ import annotations

import msgspec

from trivet.analyse import analyse
from trivet.contract import Recall, WhyNotRequest
from trivet.ids import check_id
from trivet.memory.answer.expansion.merge import LEG as EXPAND
from trivet.memory.answer.rerank import LEG as RERANK
from trivet.memory.engine import Engine
from trivet.memory.recall import Trail, follow
from trivet.search.legs.graph import named_concepts
from trivet.search.legs.phrase import holds_phrases
from trivet.secrets import masked
from trivet.types import Contribution, LegHealth, Memory, Ranking, WhyNot


def why_not(engine: Engine, request: WhyNotRequest) -> WhyNot:
    memory = engine.store.memories.get(check_id(request.id))
    fields = {field: getattr(request, field) for field in Recall.__struct_fields__}
    trail = follow(engine, Recall(**fields))
    rank = next((hit.rank for hit in trail.answer.hits if hit.id == memory.id), None)
    legs = _contributions(trail, memory.id)
    if rank is not None:
        verdict, reasons = f"It came back at rank {rank}.", _seen_by_legs(engine, trail, legs)
    else:
        verdict, reasons = _verdict(engine, trail, memory, legs)
    return WhyNot(
        query=engine.guard.without_secrets(request.query),
        id=memory.id,
        returned=rank is not None,
        rank=rank,
        verdict=verdict,
        reasons=tuple(reasons),
        legs=legs,
    )


def _verdict(engine: Engine, trail: Trail, memory: Memory, legs: dict[str, Contribution]) -> tuple[str, list[str]]:
    if memory.state == "deleted":
        return "It was forgotten, so no index holds it.", ["`restore` brings it back."]
    filtered = _filtered(engine, trail, memory)
    if filtered:
        return "A filter keeps it out.", filtered
    reasons = _seen_by_legs(engine, trail, legs) + _words(trail, memory) + _embedded(engine, memory)
    if any(hit.memory.id == memory.id for hit in trail.decision.choice.hits):
        return "It was found, but the token budget was used up before it.", reasons
    if trail.decision.retrieved.narrowed and not holds_phrases(memory, trail.decision.question):
        phrases = ", ".join(f'"{phrase}"' for phrase in trail.decision.question.phrases)
        return f"It does not hold the quoted words {phrases}, and other memories do.", reasons
    if memory.id in trail.decision.choice.dropped:
        return f"It was found, but {trail.decision.choice.dropped[memory.id]}.", reasons
    place = next((place for place, fused in enumerate(trail.decision.fused, 1) if fused.id == memory.id), None)
    if place is not None:
        return (
            f"It was found, but came {place} of {len(trail.decision.fused)} after fusion, too low to be read.",
            reasons,
        )
    return "No leg found it.", reasons


def _filtered(engine: Engine, trail: Trail, memory: Memory) -> list[str]:
    """Loosens one filter at a time to name those that bite."""
    if engine.store.memories.is_visible(memory.id, trail.decision.filter):
        return []
    shown = masked(memory)
    values = {
        "scope": f"its scope is {memory.scope}",
        "categories": f"its category is {memory.category}",
        "tags": f"its tags are {', '.join(memory.tags) or 'none'}",
        "states": f"its state is {memory.state}",
        "source": f"its source is {shown.source.uri if shown.source else 'another, or hidden'}",
        "created_after": f"it was created at {memory.created_at}",
        "created_before": f"it was created at {memory.created_at}",
        "as_of": f"it is valid from {memory.valid_from or memory.created_at} to {memory.valid_to or 'ever'}",
    }
    reasons = [
        f"{name} = {getattr(trail.decision.filter, name)!r}, and {value}"
        for name, value in values.items()
        if getattr(trail.decision.filter, name) and not _passes_alone(engine, trail, memory, name)
    ]
    return reasons or [f"it is valid from {memory.valid_from or 'ever'} to {memory.valid_to or 'ever'}, not now"]


def _passes_alone(engine: Engine, trail: Trail, memory: Memory, name: str) -> bool:
    """Whether the memory passes this one filter when all others let everything through, validity in time as well."""
    open_filter = {
        "states": ("active", "superseded", "archived", "deleted"),
        "as_of": memory.valid_from or memory.created_at,
    }
    alone = msgspec.structs.replace(
        type(trail.decision.filter)(), **{**open_filter, name: getattr(trail.decision.filter, name)}
    )
    return engine.store.memories.is_visible(memory.id, alone)


def _contributions(trail: Trail, id: str) -> dict[str, Contribution]:
    fused = next((fused for fused in trail.decision.fused if fused.id == id), None)
    if fused is None:
        return {}
    parts = fused.contributions if fused.rerank is None else (*fused.contributions, fused.rerank)
    return {contribution.leg: contribution for contribution in parts}


def _seen_by_legs(engine: Engine, trail: Trail, legs: dict[str, Contribution]) -> list[str]:
    reasons = []
    for health in trail.answer.health.legs:
        if health.leg == EXPAND:
            continue  # what it found is among what the other legs say
        if health.leg == RERANK:
            reasons.append(_by_reranker(trail, health, legs))
            continue
        ranking = next((ranking for ranking in trail.decision.retrieved.rankings if ranking.leg == health.leg), None)
        if ranking is None:
            reasons.append(f"the {health.leg} leg did not answer: {health.reason}")
        elif health.leg in legs and legs[health.leg].rank is not None:
            reasons.append(f"the {health.leg} leg put it at {legs[health.leg].rank} of {len(ranking.candidates)}")
        else:
            reasons.append(_not_in(engine, trail, ranking))
    return reasons


def _by_reranker(trail: Trail, health: LegHealth, legs: dict[str, Contribution]) -> str:
    if not health.answered:
        return f"the reranker did not answer: {health.reason}"
    if RERANK in legs:
        return f"the reranker put it at {legs[RERANK].rank} of the {health.candidates} it read"
    return f"the reranker did not read it; it read the best {health.candidates}"


def _not_in(engine: Engine, trail: Trail, ranking: Ranking) -> str:
    if ranking.leg == "graph" and trail.decision.retrieved.seeds is None:
        return f"the graph leg is silent: {_no_start(engine, trail)}"
    if not ranking.candidates:
        return f"the {ranking.leg} leg found nothing at all"
    last = ranking.candidates[-1].score
    return f"the {ranking.leg} leg has it not among its {len(ranking.candidates)}; the last of them scored {last:.3f}"


def _no_start(engine: Engine, trail: Trail) -> str:
    decision = trail.decision
    if named_concepts(engine.store, decision.question, decision.filter, decision.recipe):
        return "the query names concepts, but no hit of the other legs stands out to start from"
    return "the query names no concept the graph knows"


def _words(trail: Trail, memory: Memory) -> list[str]:
    text = " ".join((memory.title or "", memory.content, *memory.expanded_keywords, *memory.tags))
    held = set(analyse(text))
    matched = [word.text for word in trail.decision.question.words if word.is_held(held)]
    missing = [word.text for word in trail.decision.question.words if not word.is_held(held)]
    if not trail.decision.question.words:
        return ["the query has no words to search by, only function words"]
    return [f"of the query's words it holds: {', '.join(matched) or 'none'}; it lacks: {', '.join(missing) or 'none'}"]


def _embedded(engine: Engine, memory: Memory) -> list[str]:
    if memory.sensitive:
        return ["it is sensitive, so it has no vector, is not in the graph and is found by its words alone"]
    serving = engine.embedding.serving()
    if serving is not None and not engine.store.vectors.spans(serving, [memory.id]):
        return ["it is not embedded yet"]
    return []
