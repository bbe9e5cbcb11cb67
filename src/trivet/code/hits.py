"""Turns ranked chunks into hits with paths, evidence and snippets."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
import numpy as np

from trivet.code.encoder import hashes_of, normalized_name, words_of
from trivet.code.file_kind import Role
from trivet.code.index.facts import KINDS
from trivet.code.index.segment import Segment
from trivet.code.parse.file import decode, lines_of
from trivet.code.search.query import Query
from trivet.code.search.rank import RankedChunk
from trivet.code.search.view import View
from trivet.code.tree import Root, read_file
from trivet.code.types import CodeHit
from trivet.errors import InvalidInput, NotFound, TrivetError

# Source code has about this many characters per token of a language model.
CHARACTERS_PER_TOKEN = 3.5
MAX_LINE_CHARACTERS = 200
_place = re.compile(r"(?P<path>.+?)(?::(?P<line>\d{1,9}))?")
_separator = re.compile(r"\.|::|#|->")


def build_hits(
    root: Root, view: View, query: Query | None, ranked: Sequence[RankedChunk], budget: int | None
) -> tuple[CodeHit, ...]:
    """Return the hits in rank order; `query` is None for hits not found by words."""
    known = evidence(view, query, [one.chunk for one in ranked]) if query else NO_EVIDENCE
    return with_snippets(
        [_hit(root, view, known, one, budget is not None) for one in ranked], budget
    )


class HitDraft(NamedTuple):
    """A hit and its lines; if they do not all fit, the snippet starts at index `focus`."""

    hit: CodeHit
    lines: Sequence[str]
    focus: int = 0


def with_snippets(drafts: Sequence[HitDraft], budget: int | None) -> tuple[CodeHit, ...]:
    """Give each hit an equal share; following hits get what it leaves."""
    if budget is None:
        return tuple(one.hit for one in drafts)
    left, hits = budget * CHARACTERS_PER_TOKEN, []
    for place, (hit, lines, focus) in enumerate(drafts):
        share = int(left / (len(drafts) - place))
        first = focus if sum(map(len, lines)) + len(lines) > share else 0
        snippet = _truncate(lines[first:], share)
        left -= len(snippet)
        hits.append(msgspec.structs.replace(hit, snippet=snippet, snippet_start=hit.start + first))
    return tuple(hits)


def _hit(root: Root, view: View, known: Evidence, one: RankedChunk, shown: bool) -> HitDraft:
    segment, chunk = view.segment_of(one.chunk)
    path = segment.path.at(int(segment.file[chunk]))
    start, end = int(segment.start[chunk]), int(segment.end[chunk])
    lines = _lines(root, path, start, end) if shown else []
    defined = known.defined.get(one.chunk)
    row = _own_definition(segment, chunk) if defined is None else defined
    hit = CodeHit(
        path=path.removeprefix(root.prefix),
        start=start,
        end=end,
        symbol=segment.symbol.at(chunk) if defined is None else _qualified(segment, defined),
        kind=KINDS[segment.kind[chunk] if defined is None else segment.symbols.kind[defined]],
        score=round(float(one.file), 4),
        why=why_found(segment, chunk, one, known),
        signature="" if row is None else segment.symbols.signature.at(row),
    )
    return HitDraft(
        hit, lines, 0 if defined is None else max(int(segment.symbols.start[defined]) - start, 0)
    )


def _own_definition(segment: Segment, chunk: int) -> int | None:
    name = segment.symbol.at(chunk).rpartition(".")[2]
    rows = segment.symbols.rows(normalized_name(name)) if name else ()
    return next((row for row in rows if int(segment.symbols.chunk[row]) == chunk), None)


def _qualified(segment: Segment, row: int) -> str:
    own, container = segment.symbols.name.at(row), segment.symbols.container.at(row)
    return f"{container}.{own}" if container else own


def _lines(root: Root, path: str, start: int, end: int) -> list[str]:
    try:
        return lines_of(decode(read_file(root, path)))[start - 1 : end]
    except TrivetError:
        return []


def _truncate(lines: Sequence[str], characters: int) -> str:
    kept: list[str] = []
    left = characters
    for line in lines:
        shown = line if len(line) <= MAX_LINE_CHARACTERS else line[:MAX_LINE_CHARACTERS] + "…"
        left -= len(shown) + 1
        if left < 0 and kept:
            return "\n".join([*kept, "…"])
        kept.append(shown)
    return "\n".join(kept)


def symbol_hits(
    root: Root, view: View, name: str, limit: int, budget: int | None
) -> tuple[CodeHit, ...]:
    """Find definitions by name: the named container first, then code before tests."""
    *containers, last = _separator.split(name.strip())
    found = []
    for segment, first in view.placed():
        for row in segment.symbols.rows(normalized_name(last)):
            chunk = int(segment.symbols.chunk[row])
            path = segment.path.at(int(segment.file[chunk]))
            if view.alive[first + chunk] and path.startswith(root.prefix):
                found.append(
                    _symbol_hit(segment, row, path.removeprefix(root.prefix), containers, last)
                )
    found.sort(key=lambda hit: (-hit.score, hit.path, hit.start))
    if budget is None:
        return tuple(found[:limit])
    drafts = [
        HitDraft(hit, _lines(root, root.prefix + hit.path, hit.start, hit.end))
        for hit in found[:limit]
    ]
    return with_snippets(drafts, budget)


def _symbol_hit(
    segment: Segment, row: int, path: str, containers: Sequence[str], name: str
) -> CodeHit:
    symbols = segment.symbols
    own, container = symbols.name.at(row), symbols.container.at(row)
    exact, inside = (
        own == name,
        not containers or normalized_name(container).endswith(normalized_name("".join(containers))),
    )
    role = Role(int(segment.role[int(segment.file[int(symbols.chunk[row])])]))
    kind = KINDS[symbols.kind[row]]
    score = (0.4 * inside + 0.3 * exact + 0.3 * (role is Role.CODE)) * (
        0.5 if kind == "export" else 1
    )
    return CodeHit(
        path=path,
        start=int(symbols.start[row]),
        end=int(symbols.end[row]),
        symbol=_qualified(segment, row),
        kind=kind,
        score=round(score, 2),
        why={"name": "exact" if exact else "spoken", "role": role.name.lower()},
        signature=symbols.signature.at(row),
    )


def find_place(root: Root, view: View, place: str) -> int:
    """Return the chunk at `path:line`, or the file's first."""
    match = _place.fullmatch(place.strip())
    path = match["path"].removeprefix("./") if match else ""
    line = int(match["line"] or 1) if match else 1
    for segment, first in view.placed():
        for number in range(len(segment.path)):
            if segment.path.at(number) != root.prefix + path:
                continue
            chunks = range(int(segment.first_chunk[number]), int(segment.first_chunk[number + 1]))
            inside = [
                chunk for chunk in chunks if segment.start[chunk] <= line <= segment.end[chunk]
            ]
            if chunks and view.alive[first + chunks[0]]:
                if not inside:
                    raise InvalidInput(
                        f"{path} has no line {line}; it ends at {segment.end[chunks[-1]]}."
                    )
                return first + inside[0]
    raise NotFound(
        f"{path!r} is not in the index. Give a path from {root.folder}, such as src/app.py:120."
    )


# Bounds the words of one hit: a pasted issue may match a hundred.
MAX_EVIDENCE_WORDS = 8
# The first words of an issue state its subject; looking up thousands would take longer than the
# search.
MAX_CHUNKS_LOOKED_UP = 100

Why = Mapping[str, float | str]


@dataclass(frozen=True, slots=True)
class Evidence:
    """The definition's row and the words that the query names, by chunk."""

    defined: Mapping[int, int]
    words: Mapping[int, Sequence[str]]


NO_EVIDENCE = Evidence({}, {})


def evidence(view: View, query: Query, chunks: Sequence[int]) -> Evidence:
    wanted = np.array(sorted(chunks), dtype=np.int64)
    return Evidence(_defined(view, query, wanted), _words(view, query, wanted))


def why_found(segment: Segment, chunk: int, one: RankedChunk, known: Evidence) -> Why:
    """Return the legs' contributions, and `defines`, `words`, `role`, `demoted` as they apply."""
    why: dict[str, float | str] = {
        part.leg: round(float(part.weight * part.normalised), 4)
        for part in one.contributions
        if part.rank is not None
    }
    if one.chunk in known.defined:
        why["defines"] = segment.symbols.name.at(known.defined[one.chunk])
    if words := known.words.get(one.chunk):
        why["words"] = " ".join(words[:MAX_EVIDENCE_WORDS])
    role = Role(int(segment.role[int(segment.file[chunk])]))
    if role is not Role.CODE:
        why["role"] = role.name.lower()
    if one.demoted != 1:
        why["demoted"] = round(float(one.demoted), 4)
    return why


def _defined(view: View, query: Query, wanted: np.ndarray) -> dict[int, int]:
    found: dict[int, int] = {}
    chunks = set(wanted.tolist())
    for name in sorted(query.names, key=lambda name: -name.sure):
        for segment, first in view.placed():
            rows = segment.symbols.rows(name.spoken)
            for row, chunk in zip(
                rows, segment.symbols.chunk[rows.start : rows.stop].tolist(), strict=True
            ):
                if chunk + first in chunks:
                    found.setdefault(chunk + first, row)
    return found


def _words(view: View, query: Query, wanted: np.ndarray) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {int(chunk): [] for chunk in wanted}
    for word in list(
        {normalized_name(word): word.lower() for word in words_of(query.text)}.values()
    )[:MAX_CHUNKS_LOOKED_UP]:
        for chunk in sorted(
            {chunk for term in hashes_of(word) for chunk in _holders(view, term, wanted)}
        ):
            found[chunk].append(word)
    return found


def _holders(view: View, term: int, wanted: np.ndarray) -> list[int]:
    found: list[int] = []
    for segment, first in view.placed():
        holders = segment.words.holders[segment.words.span(term)]
        if len(holders):
            places = np.minimum(np.searchsorted(holders, wanted - first), len(holders) - 1)
            found += [int(chunk) for chunk in wanted[holders[places] == wanted - first]]
    return found
