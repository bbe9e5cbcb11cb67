"""Pages of links (a table of contents, an index) stand behind the notes that they list.

Such a page holds the words of every title on it, so it matches nearly any question on its subject and answers none.
Where a note that it lists was found too, the note goes first. Without such a note the page keeps its place: it is then
the best there is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import msgspec

from trivet.memory.answer.decision import Scored
from trivet.types import Memory

if TYPE_CHECKING:
    from trivet.store import Store

# Rows that begin with a link are at least so much of a page; headings do not count.
SHARE_OF_LINKS = 2 / 3
# With fewer links than that, nothing but a date or the like may follow them: "[Ana](ana.md) leads the team" is a fact.
FEWEST_LINKS = 3
SHORT_REST = 20
# A note must be about as good a hit as the page: in some leg, at least so much of its raw score. (Fused scores do not
# tell: they are relative to the other candidates, and in a small store the second best may have next to nothing.)
SHARE_OF_SCORE = 0.6
# Names of files that every folder has say nothing.
EVERYWHERE = frozenset(("readme", "index", "home", "contents"))
# Each row is tried once, from its beginning: [text](target), [[target]] or an address, perhaps in a list or a table.
_BULLET = re.compile(r"\s*(?:[-*+|]|\d{1,9}[.)])?\s*(?:\[[ xX]\]\s+)?")
_COLON = re.compile(": ")
# Possessive, so that a row without an end is given up at once.
_LINK = re.compile(
    r"!?\[\[(?P<wiki>[^\[\]|#\n]++)[^\[\]\n]*+\]\]"
    r"|\[(?P<text>[^\]\n]*+)\]\((?P<target>[^)\s]*+)[^)\n]*+\)"
    r"|<?(?P<address>https?://[^\s>]++)>?"
)


def behind_what_they_list(store: Store, hits: Sequence[Scored]) -> list[Scored]:
    """The hits, with every page of links behind the notes on it that are among them."""
    pages = {hit.memory.id: links for hit in hits if (links := links_of_page(hit.memory))}
    if not pages:
        return list(hits)
    linked = {(link.source, link.target) for link in store.links.from_sources(sorted(pages), "see-also")}
    ordered = list(hits)
    for page in [hit for hit in hits if hit.memory.id in pages]:
        place, names = ordered.index(page), pages[page.memory.id]
        better = [
            other
            for other in ordered[place + 1 :]
            if other.memory.id not in pages
            and _comparable(other, page)
            and ((page.memory.id, other.memory.id) in linked or names.intersection(names_of(other.memory)))
        ]
        if better:
            ordered.insert(ordered.index(better[-1]) + 1, _yielding(page, better))
            del ordered[place]
    return ordered


def _comparable(note: Scored, page: Scored) -> bool:
    of_page = {part.leg: part.score for part in page.fused.contributions if part.rank is not None}
    return any(
        part.rank is not None and part.score >= SHARE_OF_SCORE * of_page[part.leg]
        for part in note.fused.contributions
        if part.leg in of_page
    )


def links_of_page(memory: Memory) -> frozenset[str]:
    """The names on a page of links; none if it is no such page. What is sensitive is not looked into."""
    text = memory.content
    # Most texts hold no bracket at all, and to look for one character is the quickest there is.
    if memory.sensitive or not (("[" in text and ("](" in text or "[[" in text)) or "://" in text):
        return frozenset()
    rows = [row for row in text.splitlines() if row.strip() and not row.lstrip().startswith("#")]
    links = [found for row in rows if (found := _LINK.match(row, _start(row)))]
    if len(links) < FEWEST_LINKS:
        links = [link for link in links if len(link.string) - link.end() <= SHORT_REST]
    if len(links) < SHARE_OF_LINKS * len(rows):
        return frozenset()
    return frozenset(name for link in links for name in _names(link) if name and name not in EVERYWHERE)


def names_of(memory: Memory) -> Iterator[str]:
    """By which a page may list it: its title, the title of the note it is a section of, the name of its file."""
    title = (memory.title or "").casefold()
    for end in (*(found.start() for found in _COLON.finditer(title)), len(title)):
        yield title[:end].strip()
    if memory.source is not None:
        yield _stem(memory.source.uri)


def _names(link: re.Match[str]) -> Iterable[str]:
    text, target = link["text"] or "", link["wiki"] or link["target"] or link["address"] or ""
    return (text.strip().casefold(), link["wiki"].strip().casefold() if link["wiki"] else "", _stem(target))


def _stem(address: str) -> str:
    """The name of a file without folders, ending and anchor."""
    name = address.partition("#")[0].partition("?")[0].rstrip("/").rpartition("/")[2].strip().casefold()
    return name.rpartition(".")[0] or name


def _start(row: str) -> int:
    found = _BULLET.match(row)
    return found.end() if found else 0


def _yielding(page: Scored, better: Sequence[Scored]) -> Scored:
    """With the score of the last one before it, so that scores fall with the ranks."""
    return msgspec.structs.replace(
        page, score=min(page.score, better[-1].score), yields_to=tuple(hit.memory.id for hit in better)
    )
