"""Makes the hits a caller sees: best passage, reasons, resolutions, masks, and the token budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from trivet.analyse import Question, analyse
from trivet.answer.weigh import Weighed
from trivet.guard import masked
from trivet.passages import cut
from trivet.store.base import Model, Passage, Store
from trivet.types import Filter, Hit, Memory, PathStep, Ranking, Resolution, Why

# A text this short is one passage for every embedder.
ALWAYS_ONE_PASSAGE = 250
# Where no embedder has cut the text, windows of so many estimated tokens are shown.
SHOWN_TOKENS = 200


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
    best = _best_passages(rankings)
    long = [hit.memory.id for hit in chosen if len(hit.memory.content) > ALWAYS_ONE_PASSAGE]
    spans = store.vectors.spans(model, long) if model is not None and long else {}
    resolutions = _resolutions(store, [hit.memory.id for hit in chosen], filter, reveal)
    hits = []
    for rank, hit in enumerate(chosen, 1):
        memory = masked(hit.memory, reveal, filter.viewer)
        passages = spans.get(hit.memory.id, ())
        passage = _passage(memory, passages, best.get(hit.memory.id), question)
        hits.append(
            Hit(
                id=memory.id,
                content=memory.content,
                passage=passage,
                score=round(min(1.0, hit.score), 6),
                rank=rank,
                memory=memory,
                why=_why(question, hit, paths.get(hit.fused.id, ())),
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


def estimate_tokens(text: str) -> int:
    """About what a language model counts: four Latin letters a token, one character of other scripts."""
    ascii_count = sum(character < "\x80" for character in text) if not text.isascii() else len(text)
    return -(-ascii_count // 4) + len(text) - ascii_count


def _best_passages(rankings: Sequence[Ranking]) -> dict[str, int]:
    return {
        candidate.id: candidate.passage
        for ranking in rankings
        for candidate in ranking.candidates
        if candidate.passage is not None
    }


def _passage(memory: Memory, passages: Sequence[Passage], best: int | None, question: Question) -> str:
    content = memory.content
    if len(content) <= ALWAYS_ONE_PASSAGE:
        return content
    if not passages:
        passages = cut(content, lambda texts: [estimate_tokens(text) for text in texts], SHOWN_TOKENS)
    if best is None or best >= len(passages):
        wanted = set(question.terms)
        held = [len(wanted.intersection(analyse(content[span.start : span.stop]))) for span in passages]
        best = held.index(max(held))
    return content[passages[best].start : passages[best].stop].strip()


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
