"""Bring one leg's scores to a scale that other legs share.

One rule says what a memory is worth that the leg did not return: the leg's floor put through the same map, then held
within the range of that map. Without the second half a z-score would put a cosine floor of -1 some 28 deviations below
the list and bury every memory that only the other leg found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from trivet.types import Ranking

# The published definition of distribution-based score fusion: mean - 3 sigma is 0, mean + 3 sigma is 1.
DEVIATIONS_EACH_SIDE = 3.0
# A list without spread says nothing about how far off the rest is: one deviation, as for the lower one of two hits.
ZSCORE_MISSING_WITHOUT_SPREAD = -1.0
# The floor lies as far below the mean as the mean lies above the floor.
SPREAD_OF_THE_FLOOR = -1.0


@dataclass(frozen=True, slots=True)
class Normalised:
    """The scores of a ranking in its order, and the value of a memory that is missing from it."""

    scores: tuple[float, ...]
    missing: float


Normaliser = Callable[[Ranking], Normalised]


def minmax(ranking: Ranking) -> Normalised:
    """The worst returned score is 0, the best 1; missing is 0. Without spread every hit is 1."""
    scores = _scores(ranking)
    if scores[0] == scores[-1]:
        return _all_alike(scores, present=1.0, missing=0.0)
    return Normalised(tuple(_between(scores, scores[-1], scores[0])), 0.0)


def tmm(ranking: Ranking) -> Normalised:
    """The leg's floor is 0, the best returned score 1; missing is 0. Without spread every hit is 1."""
    scores = _scores(ranking)
    if scores[0] == scores[-1]:
        return _all_alike(scores, present=1.0, missing=0.0)
    return Normalised(tuple(_between(scores, ranking.floor, scores[0])), 0.0)


def zscore(ranking: Ranking) -> Normalised:
    """Standard deviations from the mean; missing is worth the last returned hit. Without spread hits are 0."""
    scores = _scores(ranking)
    if scores[0] == scores[-1]:
        return _all_alike(scores, present=0.0, missing=ZSCORE_MISSING_WITHOUT_SPREAD)
    offsets, _ = _offsets(scores)
    sigma = _deviation(offsets, len(offsets))
    deviations = [offset / sigma for offset in offsets]
    return Normalised(tuple(deviations), deviations[-1])


def dbsf(ranking: Ranking) -> Normalised:
    """Mean -+ 3 sample deviations are 0 and 1, clipped; missing is the floor so mapped. Without spread hits are 0.5."""
    scores = _scores(ranking)
    if scores[0] == scores[-1]:
        return _all_alike(scores, present=0.5, missing=0.0)
    offsets, unit = _offsets(scores)
    width = 2 * DEVIATIONS_EACH_SIDE * _deviation(offsets, len(offsets) - 1)
    floor = offsets[-1] - (scores[-1] - ranking.floor) / unit
    mapped = [0.5 + offset / width for offset in offsets]
    return Normalised(tuple(_clip(mapped)), _clip([0.5 + floor / width])[0])


def spread(ranking: Ranking) -> Normalised:
    """Distance from the mean in units of the mean's height above the floor; missing is worth the last returned hit.

    Unlike a z-score it keeps how much the scores differ at all: a leg whose best hits are hardly better than the rest
    has little to say about this query, and says it quietly. Without spread hits are 0 and missing is the floor, -1.
    """
    scores = _scores(ranking)
    if scores[0] == scores[-1]:
        return _all_alike(scores, present=0.0, missing=SPREAD_OF_THE_FLOOR)
    offsets, unit = _offsets(scores)
    height = (scores[-1] - ranking.floor) / unit - offsets[-1]
    relative = [offset / height for offset in offsets]
    return Normalised(tuple(relative), relative[-1])


def raw(ranking: Ranking) -> Normalised:
    """The scores as they are, missing is the floor: for a leg whose scores mean the same from query to query."""
    return Normalised(tuple(_scores(ranking)), ranking.floor)


def unit(ranking: Ranking) -> Normalised:
    """The scores as they are, held on 0..1, for a leg that gives such; missing is 0."""
    return Normalised(tuple(_clip(_scores(ranking))), 0.0)


NORMALISERS: Mapping[str, Normaliser] = {
    "minmax": minmax,
    "tmm": tmm,
    "zscore": zscore,
    "dbsf": dbsf,
    "spread": spread,
    "raw": raw,
    "unit": unit,
}

# The others map into 0..1 by themselves.
UNBOUNDED = frozenset({"zscore", "spread", "raw"})


def _scores(ranking: Ranking) -> list[float]:
    return [candidate.score for candidate in ranking.candidates]


def _all_alike(scores: Sequence[float], present: float, missing: float) -> Normalised:
    return Normalised((present,) * len(scores), missing)


def _between(scores: Sequence[float], low: float, high: float) -> list[float]:
    width = high - low
    return [(score - low) / width for score in scores]


def _clip(values: Sequence[float]) -> list[float]:
    return [0.0 if value < 0.0 else min(value, 1.0) for value in values]


def _offsets(scores: Sequence[float]) -> tuple[list[float], float]:
    # Distances from the mean in units of the list's own spread: deviations do not depend on unit and origin, and in
    # this unit no square can overflow or vanish.
    relative = _between(scores, scores[-1], scores[0])
    mean = math.fsum(relative) / len(relative)
    return [value - mean for value in relative], scores[0] - scores[-1]


def _deviation(offsets: Sequence[float], freedom: int) -> float:
    return math.sqrt(math.fsum([offset * offset for offset in offsets]) / freedom)
