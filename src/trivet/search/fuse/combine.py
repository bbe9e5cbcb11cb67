"""From legs made ready to one sorted list: gather what each leg says of a memory, score it, order it."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.search.fuse.method import Combination, Part
from trivet.types import Contribution, Fused


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
        Contribution(leg=leg, rank=rank, score=candidate.score, normalised=normalised, weight=weight)
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
