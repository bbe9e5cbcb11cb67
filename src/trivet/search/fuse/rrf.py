"""Reciprocal rank fusion: ranks only, `weight / (k + rank)` added over the legs."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.search.fuse.grammar import Options, Scalar
from trivet.search.fuse.method import Combination, Method, Parameter, Part, Weighted
from trivet.types import Ranking

# The constant of the paper that introduced the method (Cormack, Clarke and Buettcher, 2009).
CLASSIC_K = 60.0


def _is_k(value: Scalar) -> bool:
    return not isinstance(value, str) and value >= 0


def _combine(options: Options, legs: Sequence[Weighted]) -> Combination:
    parts = tuple(Part(ranking, weight, _reciprocals(options, ranking), 0.0) for ranking, weight in legs)
    return Combination(parts, bounded=False)


def _reciprocals(options: Options, ranking: Ranking) -> list[float]:
    k = float(options.get(f"k.{ranking.leg}", options["k"]))
    return [1.0 / (k + rank) for rank in range(1, len(ranking.candidates) + 1)]


RRF = Method(
    "rrf", _combine, {"k": Parameter(CLASSIC_K, accepts=_is_k, expected="a number of 0 or more", per_leg=True)}
)
