"""Why chunks were found: what each leg gave them, the names they define and the words they have of the query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trivet.code.index.segment import Segment
from trivet.code.index.terms import as_spoken, hashes_of, words_of
from trivet.code.roles import Role
from trivet.code.search.query import Query
from trivet.code.search.rank import RankedChunk
from trivet.code.search.view import View

# Of a pasted issue, a hit may have a hundred words.
MOST_WORDS = 8
# The first words of an issue say what it is about; to look up thousands would take longer than the search.
MOST_LOOKED_UP = 100

Why = Mapping[str, float | str]


@dataclass(frozen=True, slots=True)
class Evidence:
    """By chunk: the row of the definition in it that the query names, and the words of the query that it has."""

    defined: Mapping[int, int]
    words: Mapping[int, Sequence[str]]


NO_EVIDENCE = Evidence({}, {})


def evidence(view: View, query: Query, chunks: Sequence[int]) -> Evidence:
    wanted = np.array(sorted(chunks), dtype=np.int64)
    return Evidence(_defined(view, query, wanted), _words(view, query, wanted))


def why_found(segment: Segment, chunk: int, one: RankedChunk, known: Evidence) -> Why:
    """By leg what it added to the score; `defines` and `words` in words; `role` and `demoted` where it is no code."""
    why: dict[str, float | str] = {
        part.leg: round(float(part.weight * part.normalised), 4) for part in one.contributions if part.rank is not None
    }
    if one.chunk in known.defined:
        why["defines"] = segment.symbols.name.at(known.defined[one.chunk])
    if words := known.words.get(one.chunk):
        why["words"] = " ".join(words[:MOST_WORDS])
    role = Role(int(segment.role[int(segment.file[chunk])]))
    if role is not Role.CODE:
        why["role"] = role.name.lower()
    if one.demoted != 1:
        why["demoted"] = round(float(one.demoted), 4)
    return why


def _defined(view: View, query: Query, wanted: np.ndarray) -> dict[int, int]:
    """The surest name first, where a chunk defines several."""
    found: dict[int, int] = {}
    chunks = set(wanted.tolist())
    for name in sorted(query.names, key=lambda name: -name.sure):
        for segment, first in view.placed():
            rows = segment.symbols.rows(name.spoken)
            for row, chunk in zip(rows, segment.symbols.chunk[rows.start : rows.stop].tolist(), strict=True):
                if chunk + first in chunks:
                    found.setdefault(chunk + first, row)
    return found


def _words(view: View, query: Query, wanted: np.ndarray) -> dict[int, list[str]]:
    """Words as the query writes them, that stand in a chunk in any form."""
    found: dict[int, list[str]] = {int(chunk): [] for chunk in wanted}
    for word in list({as_spoken(word): word.lower() for word in words_of(query.text)}.values())[:MOST_LOOKED_UP]:
        for chunk in sorted({chunk for term in hashes_of(word) for chunk in _holders(view, term, wanted)}):
            found[chunk].append(word)
    return found


def _holders(view: View, term: int, wanted: np.ndarray) -> list[int]:
    """Which of the wanted chunks hold a term; both are in rising order."""
    found: list[int] = []
    for segment, first in view.placed():
        holders = segment.words.holders[segment.words.span(term)]
        if len(holders):
            places = np.minimum(np.searchsorted(holders, wanted - first), len(holders) - 1)
            found += [int(chunk) for chunk in wanted[holders[places] == wanted - first]]
    return found
