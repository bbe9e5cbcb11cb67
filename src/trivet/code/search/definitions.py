"""The definitions leg: chunks that define a name which the query writes, or speaks in words."""

from __future__ import annotations

import msgspec
import numpy as np

from trivet.code.index.segment import Segment
from trivet.code.index.terms import as_spoken
from trivet.code.search.query import Name, Query
from trivet.code.search.view import Scores, View


class DefinitionWeights(msgspec.Struct, frozen=True):
    """`exact`: written as it is defined. `spoken`: but for case and joiners. `inside`: in the right container."""

    exact: float = 0.65
    spoken: float = 0.4
    inside: float = 1.5
    crowd: float = 0.2  # a name that n places define counts 1 / n to this power


def definitions(view: View, query: Query, weights: DefinitionWeights) -> Scores:
    """On 0..1 by chunk."""
    scores: Scores = np.zeros(view.chunks, np.float32)
    for name in query.names:
        rows = [(segment, first, segment.symbols.rows(name.spoken)) for segment, first in view.placed()]
        count = sum(len(found) for _, _, found in rows)
        crowd = max(count, 1) ** -weights.crowd
        for segment, first, found in rows:
            for row in found:
                chunk = first + int(segment.symbols.chunk[row])
                worth = name.sure * crowd * _worth(segment, row, name, weights)
                scores[chunk] = max(scores[chunk], worth)
    scores[~view.alive] = 0
    return scores


def _worth(segment: Segment, row: int, name: Name, weights: DefinitionWeights) -> float:
    worth = weights.exact if segment.symbols.name.at(row) == name.written else weights.spoken
    if name.container:
        container = segment.symbols.container.at(row).rpartition(".")[2]
        path = segment.path.at(int(segment.file[int(segment.symbols.chunk[row])]))
        stem = path.rpartition("/")[2].partition(".")[0]
        if as_spoken(name.container) in (as_spoken(container), as_spoken(stem)):
            worth *= weights.inside
    return min(worth, 1.0)
