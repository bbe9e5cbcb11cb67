"""Makes the hits a caller sees: best passage, reasons, resolutions, masks, and the token budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from trivet.analyse import Question, analyse
from trivet.memory.answer.excerpts import best_passages, estimate_tokens, excerpts, stored_spans
from trivet.memory.answer.weigh import Weighed
from trivet.secrets import masked
from trivet.store.records import Model
from trivet.types import Filter, Hit, PathStep, Ranking, Resolution, Why

if TYPE_CHECKING:
    from trivet.store import Store


def present(
    store: Store,
    question: Question,
    chosen: Sequence[Weighed],
    rankings: Sequence[Ranking],
    model: Model | None,
    filter: Filter,
    reveal: bool,
    paths: Mapping[str, tuple[PathStep, ...]],
) -> tuple[Hit, ...]:
    best = best_passages(rankings)
    spans = stored_spans(store, model, [hit.memory for hit in chosen])
    resolutions = _resolutions(store, [hit.memory.id for hit in chosen], filter, reveal)
    hits = []
    for rank, hit in enumerate(chosen, 1):
        memory = masked(hit.memory, reveal, filter.viewer)
        passages = spans.get(hit.memory.id, ())
        (passage,) = excerpts(memory.content, passages, best.get(hit.memory.id), question)
        hits.append(
            Hit(
                id=memory.id,
                content=memory.content,
                passage=passage,
                score=round(min(1.0, hit.score), 6),
                rank=rank,
                memory=memory,
                why=_why(question, hit, paths.get(hit.fused.id, ())),
                relevance=hit.relevance,
                resolved_by=resolutions.get(memory.id, ()),
            )
        )
    return tuple(hits)


def within_budget(hits: Sequence[Hit], budget: int | None) -> tuple[tuple[Hit, ...], bool]:
    """As many hits as fit, best first. One too long is shown by its passage; what does not fit at all ends the list."""
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
    memory = msgspec.structs.replace(hit.memory, content=hit.passage)
    return msgspec.structs.replace(hit, content=hit.passage, memory=memory)


def _why(question: Question, hit: Weighed, path: tuple[PathStep, ...]) -> Why:
    memory = hit.memory
    around = " ".join((memory.title or "", *memory.expanded_keywords, *memory.tags, memory.category))
    held = {*analyse(memory.content), *analyse(around)}
    matched = tuple(word.text for word in question.words if word.is_held(held))
    return Why(
        legs={contribution.leg: contribution for contribution in hit.fused.contributions},
        matched_words=matched,
        fused=round(hit.fused.score, 6),
        exactness=round(hit.exactness, 3),
        bonus=round(hit.bonus, 6),
        prior=round(hit.prior, 6),
        rerank=hit.fused.rerank,
        blended=None if hit.fused.blended is None else round(hit.fused.blended, 6),
        redirected_from=hit.redirected_from,
        collapsed=hit.collapsed,
        path=path,
    )


def _resolutions(
    store: Store, ids: Sequence[str], filter: Filter, reveal: bool
) -> Mapping[str, tuple[Resolution, ...]]:
    """What resolves each hit, as far as the caller's scope reaches."""
    links = store.links.from_sources(ids, "resolved-by") if ids else ()
    if not links:
        return {}
    within = Filter(scope=filter.scope, states=("active", "superseded", "archived"), viewer=filter.viewer)
    memories = store.memories.get_many([link.target for link in links])
    found: dict[str, list[Resolution]] = {}
    for link in links:
        if store.memories.is_visible(link.target, within):
            memory = masked(memories[link.target], reveal, filter.viewer)
            found.setdefault(link.source, []).append(Resolution(id=memory.id, content=memory.content))
    return {id: tuple(resolutions) for id, resolutions in found.items()}
