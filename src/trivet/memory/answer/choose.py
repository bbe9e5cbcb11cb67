"""Choosing hits from candidates: successors, near-duplicates, source limits and link pages."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from trivet.contract import Recall
from trivet.memory.answer.decision import ScoredCandidate
from trivet.memory.similarity import negations
from trivet.search.relevance_features import IndexedTexts
from trivet.types import Filter, Memory

if TYPE_CHECKING:
    from trivet.store import Store


Chosen = tuple[tuple[ScoredCandidate, ...], dict[str, str]]


def choose(
    store: Store,
    scored: Sequence[ScoredCandidate],
    request: Recall,
    filter: Filter,
    texts: IndexedTexts,
) -> Chosen:
    dropped: dict[str, str] = {}
    candidates = _replace_superseded(store, scored, filter, dropped)
    candidates = _above_minimum(candidates, request.minimum_score, dropped)
    if request.collapse:
        candidates = _fold_duplicates(candidates, request.limit, dropped, texts)
    if request.per_source is not None:
        candidates = _limit_per_source(candidates, request.per_source, dropped)
    return tuple(demote_link_pages(store, candidates)), dropped


def cut(
    candidates: Sequence[ScoredCandidate], limit: int, dropped: dict[str, str]
) -> tuple[ScoredCandidate, ...]:
    for place, hit in enumerate(candidates[limit:], limit + 1):
        dropped[hit.memory.id] = f"came {place} and the limit is {limit}"
    return tuple(candidates[:limit])


def sort_hits(hits: Sequence[ScoredCandidate], sort: str) -> tuple[ScoredCandidate, ...]:
    if sort == "importance":
        return tuple(
            sorted(hits, key=lambda hit: (-hit.memory.importance, -hit.score, hit.memory.id))
        )
    if sort == "recency":
        return tuple(
            sorted(hits, key=lambda hit: (hit.memory.created_at, hit.memory.id), reverse=True)
        )
    return tuple(hits)


def _replace_superseded(
    store: Store, scored: Sequence[ScoredCandidate], filter: Filter, dropped: dict[str, str]
) -> list[ScoredCandidate]:
    superseded = [hit.memory.id for hit in scored if hit.memory.state == "superseded"]
    if not superseded or "active" not in filter.states:
        return list(scored)
    heads = _newest_successors(store, superseded, filter)
    kept: dict[str, ScoredCandidate] = {}
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
            kept[target.id] = msgspec.structs.replace(
                known, redirected_from=(*known.redirected_from, hit.memory.id)
            )
    return list(kept.values())


def _newest_successors(store: Store, ids: Sequence[str], filter: Filter) -> dict[str, Memory]:
    """Return the visible end of each chain; links cannot form a cycle."""
    current = {id: id for id in ids}
    frontier = set(ids)
    while frontier:
        successor: dict[str, str] = {}
        links = store.links.to_targets(sorted(frontier), "supersedes")  # newest successor first
        shown = store.memories.shown([link.source for link in links], filter)
        for link in links:
            if link.target not in successor and link.source in shown:
                successor[link.target] = link.source
        current = {id: successor.get(end, end) for id, end in current.items()}
        frontier = set(successor.values())
    memories = store.memories.get_many(sorted({end for id, end in current.items() if end != id}))
    return {id: memories[end] for id, end in current.items() if end in memories}


def _above_minimum(
    hits: Sequence[ScoredCandidate], minimum: float, dropped: dict[str, str]
) -> list[ScoredCandidate]:
    kept = [hit for hit in hits if hit.score >= minimum * hit.time_factor]
    for hit in hits:
        if hit.score < minimum * hit.time_factor:
            dropped[hit.memory.id] = f"scored {hit.score:.3f}, below the minimum of {minimum:g}"
    return kept


def _fold_duplicates(
    hits: Sequence[ScoredCandidate], limit: int, dropped: dict[str, str], texts: IndexedTexts
) -> list[ScoredCandidate]:
    """Fold hits that say the same, except sensitive ones."""
    texts.read(hit.memory for hit in hits if not hit.memory.sensitive)
    kept: list[ScoredCandidate] = []
    places: dict[tuple[str, str], list[int]] = {}  # by scope and terms in order
    for position, hit in enumerate(hits):
        if len(kept) >= limit:
            return [*kept, *hits[position:]]
        memory = hit.memory
        alike = (
            []
            if memory.sensitive
            else places.setdefault((memory.scope, texts.of(memory).content), [])
        )
        twin = next((place for place in alike if _same_negations(kept[place].memory, memory)), None)
        if twin is None:
            alike.append(len(kept))
            kept.append(hit)
        else:
            dropped[memory.id] = f"says the same as {kept[twin].memory.id}, which ranks higher"
            kept[twin] = msgspec.structs.replace(
                kept[twin], collapsed=(*kept[twin].collapsed, memory.id)
            )
    return kept


def _same_negations(one: Memory, other: Memory) -> bool:
    """Complete the comparison of two texts with equal terms (see `content_key`)."""
    return one.content == other.content or negations(one.content) == negations(other.content)


def _limit_per_source(
    hits: Sequence[ScoredCandidate], most: int, dropped: dict[str, str]
) -> list[ScoredCandidate]:
    seen: Counter[str] = Counter()
    kept: list[ScoredCandidate] = []
    for hit in hits:
        source = hit.memory.source.uri if hit.memory.source else None
        if source is not None:
            seen[source] += 1
            if seen[source] > most:
                dropped[hit.memory.id] = f"{most} better hits come from the same source"
                continue
        kept.append(hit)
    return kept


# Share of rows, without headings, that begin with a link.
MIN_LINK_SHARE = 2 / 3
# With fewer links, only short text may follow each: "[Ana](ana.md) leads the team" is a fact.
MIN_LINKS = 3
MAX_TRAILING_CHARACTERS = 20
# A note needs this share of the page's raw score in some leg. Fused scores are relative: in a small
# store, the second best candidate may have nearly none.
MIN_SCORE_SHARE = 0.6
# File names that identify no note.
GENERIC_FILE_NAMES = frozenset(("readme", "index", "home", "contents"))
# At the start of a row: [text](target), [[target]] or an address, in a list or a table.
_BULLET = re.compile(r"\s*(?:[-*+|]|\d{1,9}[.)])?\s*(?:\[[ xX]\]\s+)?")
_COLON = re.compile(": ")
# Possessive quantifiers, so that an unclosed link fails at once.
_LINK = re.compile(
    r"!?\[\[(?P<wiki>[^\[\]|#\n]++)[^\[\]\n]*+\]\]"
    r"|\[(?P<text>[^\]\n]*+)\]\((?P<target>[^)\s]*+)[^)\n]*+\)"
    r"|<?(?P<address>https?://[^\s>]++)>?"
)


def demote_link_pages(store: Store, hits: Sequence[ScoredCandidate]) -> list[ScoredCandidate]:
    pages = {hit.memory.id: links for hit in hits if (links := names_on_link_page(hit.memory))}
    if not pages:
        return list(hits)
    linked = {
        (link.source, link.target) for link in store.links.from_sources(sorted(pages), "see-also")
    }
    ordered = list(hits)
    for page in [hit for hit in hits if hit.memory.id in pages]:
        place, names = ordered.index(page), pages[page.memory.id]
        better = [
            other
            for other in ordered[place + 1 :]
            if other.memory.id not in pages
            and _comparable(other, page)
            and (
                (page.memory.id, other.memory.id) in linked
                or names.intersection(names_of_note(other.memory))
            )
        ]
        if better:
            ordered.insert(ordered.index(better[-1]) + 1, _demoted(page, better))
            del ordered[place]
    return ordered


def _comparable(note: ScoredCandidate, page: ScoredCandidate) -> bool:
    of_page = {part.leg: part.score for part in page.fused.contributions if part.rank is not None}
    return any(
        part.rank is not None and part.score >= MIN_SCORE_SHARE * of_page[part.leg]
        for part in note.fused.contributions
        if part.leg in of_page
    )


def names_on_link_page(memory: Memory) -> frozenset[str]:
    """Return the names on a page of links that is not sensitive."""
    text = memory.content
    # Most texts contain no bracket, and this test is the fastest.
    if memory.sensitive or not (("[" in text and ("](" in text or "[[" in text)) or "://" in text):
        return frozenset()
    rows = [row for row in text.splitlines() if row.strip() and not row.lstrip().startswith("#")]
    links = [found for row in rows if (found := _LINK.match(row, _start(row)))]
    if len(links) < MIN_LINKS:
        links = [link for link in links if len(link.string) - link.end() <= MAX_TRAILING_CHARACTERS]
    if len(links) < MIN_LINK_SHARE * len(rows):
        return frozenset()
    return frozenset(
        name for link in links for name in _names(link) if name and name not in GENERIC_FILE_NAMES
    )


def names_of_note(memory: Memory) -> Iterator[str]:
    title = (memory.title or "").casefold()
    for end in (*(found.start() for found in _COLON.finditer(title)), len(title)):
        yield title[:end].strip()
    if memory.source is not None:
        yield _stem(memory.source.uri)


def _names(link: re.Match[str]) -> Iterable[str]:
    text, target = link["text"] or "", link["wiki"] or link["target"] or link["address"] or ""
    return (
        text.strip().casefold(),
        link["wiki"].strip().casefold() if link["wiki"] else "",
        _stem(target),
    )


def _stem(address: str) -> str:
    name = (
        address.partition("#")[0]
        .partition("?")[0]
        .rstrip("/")
        .rpartition("/")[2]
        .strip()
        .casefold()
    )
    return name.rpartition(".")[0] or name


def _start(row: str) -> int:
    found = _BULLET.match(row)
    return found.end() if found else 0


def _demoted(page: ScoredCandidate, better: Sequence[ScoredCandidate]) -> ScoredCandidate:
    return msgspec.structs.replace(
        page,
        score=min(page.score, better[-1].score),
        yields_to=tuple(hit.memory.id for hit in better),
    )
