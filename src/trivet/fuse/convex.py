"""Convex combination of normalised scores, and the names others gave to special cases of it."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.fuse.grammar import Scalar
from trivet.fuse.method import Combination, Method, Parameter, Part, Weighted
from trivet.fuse.normalise import NORMALISERS, UNBOUNDED
from trivet.types import Ranking


def _is_norm(value: Scalar) -> bool:
    return value in NORMALISERS


def _combine(norm: str, legs: Sequence[Weighted]) -> Combination:
    parts = tuple(_part(norm, ranking, weight) for ranking, weight in legs)
    return Combination(parts, bounded=norm not in UNBOUNDED)


def _part(norm: str, ranking: Ranking, weight: float) -> Part:
    normalised = NORMALISERS[norm](ranking)
    return Part(ranking, weight, normalised.scores, normalised.missing)


def _named(name: str, norm: str) -> Method:
    return Method(name, lambda _, legs: _combine(norm, legs))


CONVEX = Method(
    "convex",
    lambda options, legs: _combine(str(options["norm"]), legs),
    {"norm": Parameter("minmax", accepts=_is_norm, expected="one of " + ", ".join(NORMALISERS))},
)
RSF = _named("rsf", "minmax")
DBSF = _named("dbsf", "dbsf")
TM2C2 = _named("tm2c2", "tmm")
