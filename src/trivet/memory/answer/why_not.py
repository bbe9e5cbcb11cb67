"""Why a memory did not come back: the recall runs again and explains its decision."""

from __future__ import annotations

from datetime import datetime

import msgspec

from trivet.analyse import analyse
from trivet.common.clock import stamp
from trivet.common.ids import check_id
from trivet.contract import Recall, WhyNotRequest
from trivet.memory.answer.decision import Decision
from trivet.memory.engine import Engine
from trivet.memory.recall import recall_with_decision
from trivet.search.legs.leg import LegQuery
from trivet.search.legs.registry import leg_named
from trivet.search.query import holds_phrases
from trivet.search.rerank import EXPAND, RERANK
from trivet.secrets.masking import masked
from trivet.types import Contribution, LegHealth, Memory, Ranking, WhyNot


def why_not(engine: Engine, request: WhyNotRequest) -> WhyNot:
    memory = engine.store.memories.get(check_id(request.id))
    fields = {field: getattr(request, field) for field in Recall.__struct_fields__}
    answer, decision = recall_with_decision(engine, Recall(**fields))
    rank = next((hit.rank for hit in answer.hits if hit.id == memory.id), None)
    legs = _contributions(decision, memory.id)
    if rank is not None:
        verdict, reasons = f"It came back at rank {rank}.", _seen_by_legs(engine, decision, legs)
    else:
        verdict, reasons = _verdict(engine, decision, memory, legs)
    return WhyNot(
        query=engine.guard.without_secrets(request.query),
        id=memory.id,
        returned=rank is not None,
        rank=rank,
        verdict=verdict,
        reasons=tuple(reasons),
        legs=legs,
    )


def _verdict(
    engine: Engine, decision: Decision, memory: Memory, legs: dict[str, Contribution]
) -> tuple[str, list[str]]:
    if memory.state == "deleted":
        return "It was forgotten, so no index contains it.", ["`restore` brings it back."]
    filtered = _filtered(engine, decision, memory)
    if filtered:
        return "A filter excludes it.", filtered
    reasons = (
        _seen_by_legs(engine, decision, legs) + _words(decision, memory) + _embedded(engine, memory)
    )
    reasons += _time_reason(decision, memory)
    if any(hit.memory.id == memory.id for hit in decision.hits):
        return "It was found, but earlier hits used up the token budget.", reasons
    if decision.retrieved.narrowed and not holds_phrases(memory, decision.question):
        phrases = ", ".join(f'"{phrase}"' for phrase in decision.question.phrases)
        return f"It does not contain the quoted words {phrases}, and other memories do.", reasons
    if memory.id in decision.dropped:
        return f"It was found, but {decision.dropped[memory.id]}.", reasons
    place = next(
        (place for place, fused in enumerate(decision.pool.fused, 1) if fused.id == memory.id), None
    )
    if place is not None:
        return (
            f"It was found, but ranked {place} of {len(decision.pool.fused)} after fusion, "
            "too low to be read "
            f"with an importance of {memory.importance:g}.",
            reasons,
        )
    return "No leg found it.", reasons


def _filtered(engine: Engine, decision: Decision, memory: Memory) -> list[str]:
    if engine.store.memories.is_visible(memory.id, decision.filter):
        return []
    shown = masked(memory)
    values = {
        "scope": f"its scope is {memory.scope}",
        "categories": f"its category is {memory.category}",
        "tags": f"its tags are {', '.join(memory.tags) or 'none'}",
        "states": f"its state is {memory.state}",
        "source": f"its source is {shown.source.uri if shown.source else 'another, or hidden'}",
        "created_after": f"it was created at {stamp(memory.created_at)}",
        "created_before": f"it was created at {stamp(memory.created_at)}",
        "as_of": f"it is valid from {stamp(memory.valid_from or memory.created_at)} to "
        f"{_time(memory.valid_to)}",
    }
    reasons = [
        f"{name} = {_filter_value(getattr(decision.filter, name))}, and {value}"
        for name, value in values.items()
        if getattr(decision.filter, name) and not _passes_only(engine, decision, memory, name)
    ]
    return reasons or [
        f"it is valid from {_time(memory.valid_from)} to {_time(memory.valid_to)}, not now"
    ]


def _filter_value(value: str | tuple[str, ...]) -> str:
    return repr(value) if isinstance(value, str) else ", ".join(map(repr, value))


def _time(moment: datetime | None) -> str:
    return stamp(moment) if moment else "ever"


def _passes_only(engine: Engine, decision: Decision, memory: Memory, name: str) -> bool:
    open_filter = {
        "states": ("active", "superseded", "archived", "deleted"),
        "as_of": stamp(memory.valid_from or memory.created_at),
    }
    alone = msgspec.structs.replace(
        type(decision.filter)(), **{**open_filter, name: getattr(decision.filter, name)}
    )
    return engine.store.memories.is_visible(memory.id, alone)


def _contributions(decision: Decision, id: str) -> dict[str, Contribution]:
    fused = next((fused for fused in decision.pool.fused if fused.id == id), None)
    if fused is None:
        return {}
    parts = fused.contributions if fused.rerank is None else (*fused.contributions, fused.rerank)
    return {contribution.leg: contribution for contribution in parts}


def _seen_by_legs(engine: Engine, decision: Decision, legs: dict[str, Contribution]) -> list[str]:
    reasons = []
    for health in decision.pool.health:
        if health.leg == EXPAND:
            continue  # its finds are in the rankings of the other legs
        if health.leg == RERANK:
            reasons.append(_reranker_reason(decision, health, legs))
            continue
        ranking = next(
            (ranking for ranking in decision.retrieved.rankings if ranking.leg == health.leg), None
        )
        if ranking is None:
            reasons.append(f"the {health.leg} leg did not answer: {health.reason}")
        elif health.leg in legs and legs[health.leg].rank is not None:
            reasons.append(
                f"the {health.leg} leg put it at {legs[health.leg].rank} of "
                f"{len(ranking.candidates)}"
            )
        else:
            reasons.append(_not_in(engine, decision, ranking))
    return reasons


def _reranker_reason(decision: Decision, health: LegHealth, legs: dict[str, Contribution]) -> str:
    if not health.answered:
        return f"the reranker did not answer: {health.reason}"
    if RERANK in legs:
        return f"the reranker put it at {legs[RERANK].rank} of the {health.candidates} it read"
    return f"the reranker did not read it; it read the best {health.candidates}"


def _not_in(engine: Engine, decision: Decision, ranking: Ranking) -> str:
    query = LegQuery(
        engine.store, engine.embedding, decision.question, decision.filter, decision.recipe
    )
    leg = leg_named(ranking.leg)
    reason = leg.no_hits_reason(query, ranking) if leg is not None else None
    if reason is not None:
        return f"the {ranking.leg} leg has no hits: {reason}"
    if not ranking.candidates:
        return f"the {ranking.leg} leg found nothing"
    last = ranking.candidates[-1].score
    return (
        f"the {ranking.leg} leg did not rank it among its {len(ranking.candidates)}; the "
        f"last of them scored {last:.3f}"
    )


def _words(decision: Decision, memory: Memory) -> list[str]:
    text = " ".join((memory.title or "", memory.content, *memory.expanded_keywords, *memory.tags))
    held = set(analyse(text))
    matched = decision.question.words_matched_by(held)
    missing = [word.text for word in decision.question.words if word.text not in matched]
    if not decision.question.words:
        return ["the query has only function words, which are not searched"]
    return [
        f"of the query's words it contains: {', '.join(matched) or 'none'}; it lacks: "
        f"{', '.join(missing) or 'none'}"
    ]


def _time_reason(decision: Decision, memory: Memory) -> list[str]:
    if decision.time is None or decision.time.reason(memory) is not None:
        return []
    return [f"it is not from {decision.time.understood}; memories that are count more"]


def _embedded(engine: Engine, memory: Memory) -> list[str]:
    if memory.sensitive:
        return [
            "it is sensitive, so it has no vector, is not in the graph and is found only by "
            "its words"
        ]
    serving = engine.embedding.serving()
    if serving is not None and not engine.store.vectors.spans(serving, [memory.id]):
        return ["it is not embedded yet"]
    return []
