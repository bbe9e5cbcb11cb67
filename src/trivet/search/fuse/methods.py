"""Score normalization and fusion methods.

A memory that a leg did not return gets the leg's floor, clamped to the range of its scores.
Unclamped, a z-score would put a cosine floor of -1 some 28 deviations below the list and bury every
memory that only the other leg found.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trivet.errors import InvalidInput
from trivet.search.fuse.grammar import Options, Scalar
from trivet.types import Contribution, Ranking

# Published definition of distribution-based score fusion: mean +-3 sigma map to 0 and 1.
DEVIATIONS_EACH_SIDE = 3.0
# For equal scores: one deviation, as for the lower of two hits.
ZSCORE_MISSING_WITHOUT_SPREAD = -1.0
# The value of the floor when all hits are equal.
SPREAD_OF_THE_FLOOR = -1.0


@dataclass(frozen=True, slots=True)
class Normalised:
    scores: tuple[float, ...]
    missing: float


Normaliser = Callable[[Ranking], Normalised]


def minmax(ranking: Ranking) -> Normalised:
    """Map the worst and best returned scores to 0 and 1; missing is 0, equal hits are 1."""
    scores = _scores(ranking)
    if scores[0] == scores[-1]:
        return _all_equal(scores, present=1.0, missing=0.0)
    return Normalised(tuple(_between(scores, scores[-1], scores[0])), 0.0)


def tmm(ranking: Ranking) -> Normalised:
    """Map the floor and the best returned score to 0 and 1; missing is 0, equal hits are 1."""
    scores = _scores(ranking)
    if scores[0] == scores[-1]:
        return _all_equal(scores, present=1.0, missing=0.0)
    return Normalised(tuple(_between(scores, ranking.floor, scores[0])), 0.0)


def zscore(ranking: Ranking) -> Normalised:
    """Return standard deviations from the mean; missing is the last hit, equal hits are 0."""
    scores = _scores(ranking)
    if scores[0] == scores[-1]:
        return _all_equal(scores, present=0.0, missing=ZSCORE_MISSING_WITHOUT_SPREAD)
    offsets, _ = _offsets(scores)
    sigma = _deviation(offsets, len(offsets))
    deviations = [offset / sigma for offset in offsets]
    return Normalised(tuple(deviations), deviations[-1])


def dbsf(ranking: Ranking) -> Normalised:
    """Map the mean -3 and +3 sample deviations to 0 and 1, clipped; equal hits are 0.5."""
    scores = _scores(ranking)
    if scores[0] == scores[-1]:
        return _all_equal(scores, present=0.5, missing=0.0)
    offsets, unit = _offsets(scores)
    width = 2 * DEVIATIONS_EACH_SIDE * _deviation(offsets, len(offsets) - 1)
    floor = offsets[-1] - (scores[-1] - ranking.floor) / unit
    mapped = [0.5 + offset / width for offset in offsets]
    return Normalised(tuple(_clip(mapped)), _clip([0.5 + floor / width])[0])


def spread(ranking: Ranking) -> Normalised:
    """Divide distances from the mean by the mean's height above the floor; missing is the last hit.

    Unlike a z-score, this mutes a leg whose best hits barely stand out. Equal hits are 0, missing
    -1.
    """
    scores = _scores(ranking)
    if scores[0] == scores[-1]:
        return _all_equal(scores, present=0.0, missing=SPREAD_OF_THE_FLOOR)
    offsets, unit = _offsets(scores)
    height = (scores[-1] - ranking.floor) / unit - offsets[-1]
    relative = [offset / height for offset in offsets]
    return Normalised(tuple(relative), relative[-1])


def raw(ranking: Ranking) -> Normalised:
    """Return the scores unchanged, for scores comparable between queries; missing is the floor."""
    return Normalised(tuple(_scores(ranking)), ranking.floor)


def unit(ranking: Ranking) -> Normalised:
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

UNBOUNDED = frozenset({"zscore", "spread", "raw"})


def _scores(ranking: Ranking) -> list[float]:
    return [candidate.score for candidate in ranking.candidates]


def _all_equal(scores: Sequence[float], present: float, missing: float) -> Normalised:
    return Normalised((present,) * len(scores), missing)


def _between(scores: Sequence[float], low: float, high: float) -> list[float]:
    width = high - low
    return [(score - low) / width for score in scores]


def _clip(values: Sequence[float]) -> list[float]:
    return [0.0 if value < 0.0 else min(value, 1.0) for value in values]


def _offsets(scores: Sequence[float]) -> tuple[list[float], float]:
    # In units of the list's range, so that no square overflows or vanishes.
    relative = _between(scores, scores[-1], scores[0])
    mean = math.fsum(relative) / len(relative)
    return [value - mean for value in relative], scores[0] - scores[-1]


def _deviation(offsets: Sequence[float], freedom: int) -> float:
    return math.sqrt(math.fsum([offset * offset for offset in offsets]) / freedom)


# Cormack, Clarke and Buettcher, 2009.
CLASSIC_K = 60.0

Weighted = tuple[Ranking, float]
Row = Sequence[Contribution]


def weighted_sums(rows: Sequence[Row]) -> list[float]:
    """Sum each memory's weighted scores, rounded once: reordered equal terms stay tied."""
    by_leg = [[part.weight * part.normalised for part in leg] for leg in zip(*rows, strict=True)]
    return list(map(math.fsum, zip(*by_leg, strict=True)))


@dataclass(frozen=True, slots=True)
class Part:
    ranking: Ranking
    weight: float
    normalised: Sequence[float]
    missing: float


@dataclass(frozen=True, slots=True)
class Combination:
    parts: tuple[Part, ...]
    bounded: bool
    score: Callable[[Sequence[Row]], Sequence[float]] = weighted_sums


@dataclass(frozen=True, slots=True)
class Parameter:
    """An option of a method; with `per_leg`, also `name.leg=value`."""

    default: Scalar
    accepts: Callable[[Scalar], bool]
    expected: str
    per_leg: bool = False


@dataclass(frozen=True, slots=True)
class Method:
    """A fusion method. `combine` gets legs with hits and positive weight, by name."""

    name: str
    combine: Callable[[Options, Sequence[Weighted]], Combination]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


def _is_valid_k(value: Scalar) -> bool:
    return not isinstance(value, str) and value >= 0


def _by_rank(options: Options, legs: Sequence[Weighted]) -> Combination:
    parts = tuple(
        Part(ranking, weight, _reciprocals(options, ranking), 0.0) for ranking, weight in legs
    )
    return Combination(parts, bounded=False)


def _reciprocals(options: Options, ranking: Ranking) -> list[float]:
    k = float(options.get(f"k.{ranking.leg}", options["k"]))
    return [1.0 / (k + rank) for rank in range(1, len(ranking.candidates) + 1)]


def _is_norm(value: Scalar) -> bool:
    return value in NORMALISERS


def _by_score(options: Options, legs: Sequence[Weighted]) -> Combination:
    norms = [str(options.get(f"norm.{ranking.leg}", options["norm"])) for ranking, _ in legs]
    parts = tuple(_part(norm, *weighted) for norm, weighted in zip(norms, legs, strict=True))
    return Combination(parts, bounded=UNBOUNDED.isdisjoint(norms))


def _part(norm: str, ranking: Ranking, weight: float) -> Part:
    normalised = NORMALISERS[norm](ranking)
    return Part(ranking, weight, normalised.scores, normalised.missing)


def _by_saturation(options: Options, legs: Sequence[Weighted]) -> Combination:
    """Multiply a memory by `without` if no leg with a `half` returned it."""
    halves = [float(options.get(f"half.{ranking.leg}", options["half"])) for ranking, _ in legs]
    parts = tuple(
        _saturated(half, *weighted) if half else _part("unit", *weighted)
        for half, weighted in zip(halves, legs, strict=True)
    )
    places = [at for at, half in enumerate(halves) if half]
    if not places:
        return Combination(
            parts, bounded=True
        )  # no saturating leg answered, so `without` would apply to every memory
    without = float(options["without"])

    def score(rows: Sequence[Row]) -> list[float]:
        factors = (without if all(row[at].rank is None for at in places) else 1.0 for row in rows)
        return [factor * total for factor, total in zip(factors, weighted_sums(rows), strict=True)]

    return Combination(parts, bounded=True, score=score)


def _saturated(half: float, ranking: Ranking, weight: float) -> Part:
    above = [candidate.score - ranking.floor for candidate in ranking.candidates]
    return Part(ranking, weight, [score / (score + half) for score in above], 0.0)


def _is_share(value: Scalar) -> bool:
    return not isinstance(value, str) and 0 <= value <= 1


def _convex_named(name: str, norm: str) -> Method:
    return Method(name, lambda _, legs: _by_score(Options({"norm": norm}), legs))


_methods: dict[str, Method] = {
    method.name: method
    for method in (
        Method(
            "rrf",
            _by_rank,
            {
                "k": Parameter(
                    CLASSIC_K, _is_valid_k, expected="a number of 0 or more", per_leg=True
                )
            },
        ),
        Method(
            "convex",
            _by_score,
            {
                "norm": Parameter(
                    "minmax", _is_norm, expected="one of " + ", ".join(NORMALISERS), per_leg=True
                )
            },
        ),
        _convex_named("rsf", "minmax"),
        _convex_named("dbsf", "dbsf"),
        _convex_named("tm2c2", "tmm"),
        Method(
            "saturation",
            _by_saturation,
            {
                "half": Parameter(0.0, _is_valid_k, expected="a number of 0 or more", per_leg=True),
                "without": Parameter(0.72, _is_share, expected="a number from 0 to 1"),
            },
        ),
    )
}


def register(method: Method) -> None:
    """Add a method; existing names keep their meaning, for recorded recipes."""
    if method.name in _methods:
        raise InvalidInput(f"fusion method {method.name!r} already exists; choose another name")
    _methods[method.name] = method


def method_named(name: str) -> Method:
    if name not in _methods:
        raise InvalidInput(f"unknown fusion method {name!r}; known are {', '.join(_methods)}")
    return _methods[name]


def parameter_names() -> frozenset[str]:
    return frozenset(name for method in _methods.values() for name in method.parameters)
