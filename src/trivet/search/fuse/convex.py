"""Convex combination of normalised scores, and the names others gave to special cases of it."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.search.fuse.grammar import Options, Scalar
from trivet.search.fuse.method import Combination, Method, Parameter, Part, Weighted
from trivet.search.fuse.normalise import NORMALISERS, UNBOUNDED
from trivet.types import Ranking


def _is_norm(value: Scalar) -> bool:
    return value in NORMALISERS


def _combine(options: Options, legs: Sequence[Weighted]) -> Combination:
    norms = {ranking.leg: str(options.get(f"norm.{ranking.leg}", options["norm"])) for ranking, _ in legs}
    parts = tuple(_part(norms[ranking.leg], ranking, weight) for ranking, weight in legs)
    return Combination(parts, bounded=UNBOUNDED.isdisjoint(norms.values()))


def _part(norm: str, ranking: Ranking, weight: float) -> Part:
    normalised = NORMALISERS[norm](ranking)
    return Part(ranking, weight, normalised.scores, normalised.missing)


def _named(name: str, norm: str) -> Method:
    return Method(name, lambda _, legs: _combine(Options({"norm": norm}), legs))


CONVEX = Method(
    "convex",
    _combine,
    {"norm": Parameter("minmax", accepts=_is_norm, expected="one of " + ", ".join(NORMALISERS), per_leg=True)},
)
RSF = _named("rsf", "minmax")
DBSF = _named("dbsf", "dbsf")
TM2C2 = _named("tm2c2", "tmm")
