"""From rankings to one sorted list: which legs take part, what each says of a memory, its score, the order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from trivet.errors import InvalidInput
from trivet.search.fuse.methods import Combination, Part, Weighted
from trivet.types import Contribution, Fused, Ranking

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


def merge(combination: Combination) -> tuple[Fused, ...]:
    """Every memory that any leg returned, once, best first; ties by best rank in any leg, then by id."""
    legs = [[candidate.id for candidate in part.ranking.candidates] for part in combination.parts]
    ids = _in_tie_order(legs)
    columns = [_column(part, leg, ids) for part, leg in zip(combination.parts, legs, strict=True)]
    rows = list(zip(*columns, strict=True))
    raw = combination.score(rows)
    scores = _clipped(raw) if combination.bounded else _stretched(raw)
    # A stable sort, so equal scores stay in tie order.
    order = sorted(range(len(ids)), key=scores.__getitem__, reverse=True)
    return tuple([Fused(id=ids[at], score=scores[at], contributions=rows[at]) for at in order])


def _in_tie_order(legs: Sequence[Sequence[str]]) -> list[str]:
    ranked = sorted([(rank, id) for leg in legs for rank, id in enumerate(leg)])
    return list(dict.fromkeys([id for _, id in ranked]))


def _column(part: Part, leg: Sequence[str], ids: Sequence[str]) -> list[Contribution]:
    missing = _missing(part)
    present = dict(zip(leg, _present(part), strict=True))
    return [present.get(id, missing) for id in ids]


def _missing(part: Part) -> Contribution:
    ranking = part.ranking
    return Contribution(leg=ranking.leg, rank=None, score=ranking.floor, normalised=part.missing, weight=part.weight)


def _present(part: Part) -> list[Contribution]:
    leg, weight = part.ranking.leg, part.weight
    pairs = zip(part.ranking.candidates, part.normalised, strict=True)
    return [
        Contribution(
            leg=leg,
            rank=rank,
            score=candidate.score,
            normalised=normalised,
            weight=weight,
            estimated=candidate.estimated,
        )
        for rank, (candidate, normalised) in enumerate(pairs, 1)
    ]


def _clipped(scores: Sequence[float]) -> Sequence[float]:
    # Shares that add up to 1 can pass it by a rounding.
    return [min(score, 1.0) for score in scores] if max(scores, default=0.0) > 1.0 else scores


def _stretched(scores: Sequence[float]) -> Sequence[float]:
    worst, best = min(scores, default=0.0), max(scores, default=0.0)
    if worst == best:
        return [1.0] * len(scores)
    span = best - worst
    return [(score - worst) / span for score in scores]
