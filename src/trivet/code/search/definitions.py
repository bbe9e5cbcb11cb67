"""The definitions leg: chunks that define a name which the query writes, or speaks in words."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
import numpy as np

from trivet.code.index.facts import KINDS
from trivet.code.index.segment import Segment
from trivet.code.index.terms import as_spoken
from trivet.code.search.query import Name, Query
from trivet.code.search.view import Scores, View

EXPORT = KINDS.index("export")


class DefinitionWeights(msgspec.Struct, frozen=True):
    """`exact`: written as it is defined. `spoken`: but for case and joiners. `inside`: in the right container.

    `other`: spoken alike, where another name is written just so. `exported`: passed on here and defined elsewhere.
    """

    exact: float = 0.65
    spoken: float = 0.4
    inside: float = 1.5
    other: float = 0.5
    exported: float = 1.0
    crowd: float = 0.2  # a name that n places define counts 1 / n to this power


def definitions(view: View, query: Query, weights: DefinitionWeights) -> Scores:
    """On 0..1 by chunk."""
    scores: Scores = np.zeros(view.chunks, np.float32)
    for name in query.names:
        found = _found(view, name)
        places = max(sum(one.defines for one in found), 1)
        exactly = sum(one.defines and one.exact for one in found)
        others = weights.other if any(one.exact for one in found) else 1.0
        for one in found:
            # Those that only sound alike are no crowd around the one that is written just so.
            crowd = (exactly if one.exact and exactly else places) ** -weights.crowd
            factor = (1.0 if one.exact else others) * (1.0 if one.defines else weights.exported)
            worth = name.sure * crowd * factor * _worth(one, name, weights)
            scores[one.chunk] = max(scores[one.chunk], worth)
    scores[~view.alive] = 0
    return scores


class _Found(NamedTuple):
    """A place that has the name: the row of a segment, and its chunk in the view."""

    segment: Segment
    row: int
    chunk: int
    exact: bool
    defines: bool


def _found(view: View, name: Name) -> list[_Found]:
    return [
        _Found(
            segment,
            row,
            first + int(segment.symbols.chunk[row]),
            segment.symbols.name.at(row) == name.written,
            bool(segment.symbols.kind[row] != EXPORT),
        )
        for segment, first in view.placed()
        for row in segment.symbols.rows(name.spoken)
    ]


def _worth(found: _Found, name: Name, weights: DefinitionWeights) -> float:
    segment, row = found.segment, found.row
    worth = weights.exact if found.exact else weights.spoken
    if name.container:
        container = segment.symbols.container.at(row).rpartition(".")[2]
        path = segment.path.at(int(segment.file[int(segment.symbols.chunk[row])]))
        stem = path.rpartition("/")[2].partition(".")[0]
        if as_spoken(name.container) in (as_spoken(container), as_spoken(stem)):
            worth *= weights.inside
    return min(worth, 1.0)
