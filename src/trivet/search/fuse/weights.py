"""Which legs take part in a fusion, and with what share."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from trivet.errors import InvalidInput
from trivet.search.fuse.method import Weighted
from trivet.types import Ranking

WEIGHT_OF_A_LEG_NOT_NAMED = 1.0


def weigh(weights: Mapping[str, float], rankings: Sequence[Ranking]) -> tuple[Weighted, ...]:
    """The legs that returned something and have a weight, by name; their shares add up to 1."""
    pairs = [(ranking, weights.get(ranking.leg, WEIGHT_OF_A_LEG_NOT_NAMED)) for ranking in rankings]
    if pairs and not any(weight for _, weight in pairs):
        raise InvalidInput("every leg has the weight 0; give at least one leg a weight above 0")
    active = [(ranking, weight) for ranking, weight in pairs if weight and ranking.candidates]
    # By name, so that the order in which legs answered cannot change a bit of the result.
    active.sort(key=lambda pair: pair[0].leg)
    return _shares(active)


def _shares(active: Sequence[Weighted]) -> tuple[Weighted, ...]:
    # Relative to the heaviest first: the sum of huge weights would overflow.
    heaviest = max((weight for _, weight in active), default=1.0)
    total = math.fsum(weight / heaviest for _, weight in active)
    return tuple((ranking, weight / heaviest / total) for ranking, weight in active)
