"""The fusion methods: a name, the options it knows, and a function from weighted rankings to normalised scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trivet.errors import InvalidInput
from trivet.search.fuse.grammar import Options, Scalar
from trivet.search.fuse.normalise import NORMALISERS, UNBOUNDED
from trivet.types import Contribution, Ranking

# The constant of the paper that introduced reciprocal rank fusion (Cormack, Clarke and Buettcher, 2009).
CLASSIC_K = 60.0

Weighted = tuple[Ranking, float]
Row = Sequence[Contribution]


def weighted_sums(rows: Sequence[Row]) -> list[float]:
    """The plain way to score: each memory's normalised scores, weighted and added.

    Rounded once (fsum), so that equal terms in another order stay an exact tie. Leg by leg, which is twice as fast.
    """
    by_leg = [[part.weight * part.normalised for part in leg] for leg in zip(*rows, strict=True)]
    return list(map(math.fsum, zip(*by_leg, strict=True)))


@dataclass(frozen=True, slots=True)
class Part:
    """One leg made ready: a normalised score for each of its candidates, and one for all it did not return."""

    ranking: Ranking
    weight: float
    normalised: Sequence[float]
    missing: float


@dataclass(frozen=True, slots=True)
class Combination:
    """The legs made ready, how a memory's row of contributions becomes a score, and whether that is on 0..1 already."""

    parts: tuple[Part, ...]
    bounded: bool
    score: Callable[[Sequence[Row]], Sequence[float]] = weighted_sums


@dataclass(frozen=True, slots=True)
class Parameter:
    """An option that belongs to a method. With `per_leg`, `name.leg=value` sets it for one leg."""

    default: Scalar
    accepts: Callable[[Scalar], bool]
    expected: str
    per_leg: bool = False


@dataclass(frozen=True, slots=True)
class Method:
    """A way to fuse. `combine` gets only legs that returned something and have a weight above 0, sorted by name."""

    name: str
    combine: Callable[[Options, Sequence[Weighted]], Combination]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)


def _is_k(value: Scalar) -> bool:
    return not isinstance(value, str) and value >= 0


def _by_rank(options: Options, legs: Sequence[Weighted]) -> Combination:
    """Reciprocal rank fusion: ranks only, `weight / (k + rank)` added over the legs."""
    parts = tuple(Part(ranking, weight, _reciprocals(options, ranking), 0.0) for ranking, weight in legs)
    return Combination(parts, bounded=False)


def _reciprocals(options: Options, ranking: Ranking) -> list[float]:
    k = float(options.get(f"k.{ranking.leg}", options["k"]))
    return [1.0 / (k + rank) for rank in range(1, len(ranking.candidates) + 1)]


def _is_norm(value: Scalar) -> bool:
    return value in NORMALISERS


def _by_score(options: Options, legs: Sequence[Weighted]) -> Combination:
    """A convex combination of normalised scores."""
    norms = [str(options.get(f"norm.{ranking.leg}", options["norm"])) for ranking, _ in legs]
    parts = tuple(_part(norm, *weighted) for norm, weighted in zip(norms, legs, strict=True))
    return Combination(parts, bounded=UNBOUNDED.isdisjoint(norms))


def _part(norm: str, ranking: Ranking, weight: float) -> Part:
    normalised = NORMALISERS[norm](ranking)
    return Part(ranking, weight, normalised.scores, normalised.missing)


def _by_saturation(options: Options, legs: Sequence[Weighted]) -> Combination:
    """A leg with a `half` saturates, `s / (s + half)`; the others count as they are, on 0..1.

    A memory that no saturating leg returned counts `without` times as much: it has no such evidence.
    """
    halves = [float(options.get(f"half.{ranking.leg}", options["half"])) for ranking, _ in legs]
    parts = tuple(
        _saturated(half, *weighted) if half else _part("unit", *weighted)
        for half, weighted in zip(halves, legs, strict=True)
    )
    places = [at for at, half in enumerate(halves) if half]
    if not places:
        return Combination(parts, bounded=True)  # where no such leg answered, nothing is told apart by it
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
    """The name that others gave to a convex combination with one norm."""
    return Method(name, lambda _, legs: _by_score(Options({"norm": norm}), legs))


_methods: dict[str, Method] = {
    method.name: method
    for method in (
        Method("rrf", _by_rank, {"k": Parameter(CLASSIC_K, _is_k, expected="a number of 0 or more", per_leg=True)}),
        Method(
            "convex",
            _by_score,
            {"norm": Parameter("minmax", _is_norm, expected="one of " + ", ".join(NORMALISERS), per_leg=True)},
        ),
        _convex_named("rsf", "minmax"),
        _convex_named("dbsf", "dbsf"),
        _convex_named("tm2c2", "tmm"),
        Method(
            "saturation",
            _by_saturation,
            {
                "half": Parameter(0.0, _is_k, expected="a number of 0 or more", per_leg=True),
                "without": Parameter(0.72, _is_share, expected="a number from 0 to 1"),
            },
        ),
    )
}


def register(method: Method) -> None:
    """Add a method under its name; a name is given once, so that a recorded recipe keeps its meaning."""
    if method.name in _methods:
        raise InvalidInput(f"there is a fusion method {method.name!r} already; choose another name")
    _methods[method.name] = method


def method_named(name: str) -> Method:
    """Look a method up, or say which ones there are."""
    if name not in _methods:
        raise InvalidInput(f"there is no fusion method {name!r}; known are {', '.join(_methods)}")
    return _methods[name]


def parameter_names() -> frozenset[str]:
    """The option names that belong to some method, and therefore can never be the weight of a leg."""
    return frozenset(name for method in _methods.values() for name in method.parameters)
