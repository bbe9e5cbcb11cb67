"""Which candidates become hits: successors stand for superseded ones, twins are folded, sources capped."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from trivet.contract import Recall
from trivet.memory.answer.decision import Scored
from trivet.memory.answer.pages_of_links import behind_what_they_list
from trivet.memory.likeness import negations
from trivet.search.indexed_texts import IndexedTexts
from trivet.types import Filter, Memory

if TYPE_CHECKING:
    from trivet.store import Store

Chosen = tuple[tuple[Scored, ...], dict[str, str]]


def choose(store: Store, scored: Sequence[Scored], request: Recall, filter: Filter, texts: IndexedTexts) -> Chosen:
    """The candidates in order, and for every one that was dropped, why. `cut` keeps as many as were asked for."""
    dropped: dict[str, str] = {}
    candidates = _redirected(store, scored, filter, dropped)
    candidates = _above_minimum(candidates, request.minimum_score, dropped)
    if request.collapse:
        candidates = _collapsed(candidates, request.limit, dropped, texts)
    if request.per_source is not None:
        candidates = _capped(candidates, request.per_source, dropped)
    return tuple(behind_what_they_list(store, candidates)), dropped


def cut(candidates: Sequence[Scored], limit: int, dropped: dict[str, str]) -> tuple[Scored, ...]:
    for place, hit in enumerate(candidates[limit:], limit + 1):
        dropped[hit.memory.id] = f"came {place} and the limit is {limit}"
    return tuple(candidates[:limit])


def sort_hits(hits: Sequence[Scored], sort: str) -> tuple[Scored, ...]:
    """Relevance decides what is in the answer; the sort decides the order in which it is shown."""
    if sort == "importance":
        return tuple(sorted(hits, key=lambda hit: (-hit.memory.importance, -hit.score, hit.memory.id)))
    if sort == "recency":
        return tuple(sorted(hits, key=lambda hit: (hit.memory.created_at, hit.memory.id), reverse=True))
    return tuple(hits)


def _redirected(store: Store, scored: Sequence[Scored], filter: Filter, dropped: dict[str, str]) -> list[Scored]:
    """A superseded memory is answered by the head of its chain, in the place it earned."""
    superseded = [hit.memory.id for hit in scored if hit.memory.state == "superseded"]
    if not superseded or "active" not in filter.states:
        return list(scored)
    heads = _heads(store, superseded, filter)
    kept: dict[str, Scored] = {}
    for hit in scored:
        head = heads.get(hit.memory.id)
        target = head or hit.memory
        if head is not None:
            dropped[hit.memory.id] = f"superseded by {head.id}, which is served in its place"
        if target.id not in kept:
            origin = (hit.memory.id,) if head is not None else ()
            kept[target.id] = msgspec.structs.replace(hit, memory=target, redirected_from=origin)
        elif head is not None:
            known = kept[target.id]
            kept[target.id] = msgspec.structs.replace(known, redirected_from=(*known.redirected_from, hit.memory.id))
    return list(kept.values())


def _heads(store: Store, ids: Sequence[str], filter: Filter) -> dict[str, Memory]:
    """For each id the visible end of its chain of successors. Links admit no circles, so this ends."""
    current = {id: id for id in ids}
    frontier = set(ids)
    while frontier:
        successor: dict[str, str] = {}
        links = store.links.to_targets(sorted(frontier), "supersedes")  # the newest successor comes first
        shown = store.memories.shown([link.source for link in links], filter)
        for link in links:
            if link.target not in successor and link.source in shown:
                successor[link.target] = link.source
        current = {id: successor.get(end, end) for id, end in current.items()}
        frontier = set(successor.values())
    memories = store.memories.get_many(sorted({end for id, end in current.items() if end != id}))
    return {id: memories[end] for id, end in current.items() if end in memories}


def _above_minimum(hits: Sequence[Scored], minimum: float, dropped: dict[str, str]) -> list[Scored]:
    """By the score without the time that was asked about, which is a preference and leaves nothing out."""
    kept = [hit for hit in hits if hit.score >= minimum * hit.time_factor]
    for hit in hits:
        if hit.score < minimum * hit.time_factor:
            dropped[hit.memory.id] = f"scored {hit.score:.3f}, below the minimum of {minimum:g}"
    return kept


def _collapsed(hits: Sequence[Scored], limit: int, dropped: dict[str, str], texts: IndexedTexts) -> list[Scored]:
    """Folds a hit into a better one that says the same. Sensitive ones are left alone: likeness would reveal them."""
    texts.read(hit.memory for hit in hits if not hit.memory.sensitive)
    kept: list[Scored] = []
    places: dict[tuple[str, str], list[int]] = {}  # of those with the same terms in the same order
    for position, hit in enumerate(hits):
        if len(kept) >= limit:
            return [*kept, *hits[position:]]
        memory = hit.memory
        alike = [] if memory.sensitive else places.setdefault((memory.scope, texts.of(memory).content), [])
        twin = next((place for place in alike if _denies_the_same(kept[place].memory, memory)), None)
        if twin is None:
            alike.append(len(kept))
            kept.append(hit)
        else:
            dropped[memory.id] = f"says the same as {kept[twin].memory.id}, which came before it"
            kept[twin] = msgspec.structs.replace(kept[twin], collapsed=(*kept[twin].collapsed, memory.id))
    return kept


def _denies_the_same(one: Memory, other: Memory) -> bool:
    """Of two texts with equal terms: whether they say the same (`essence` in likeness.py)."""
    return one.content == other.content or negations(one.content) == negations(other.content)


def _capped(hits: Sequence[Scored], most: int, dropped: dict[str, str]) -> list[Scored]:
    seen: Counter[str] = Counter()
    kept: list[Scored] = []
    for hit in hits:
        source = hit.memory.source.uri if hit.memory.source else None
        if source is not None:
            seen[source] += 1
            if seen[source] > most:
                dropped[hit.memory.id] = f"{most} better hits came from the same source already"
                continue
        kept.append(hit)
    return kept
