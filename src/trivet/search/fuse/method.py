"""What a fusion method is: a name, the options it knows, and a function from weighted rankings to scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from trivet.search.fuse.grammar import Options, Scalar
from trivet.types import Contribution, Fused, Ranking

Weighted = tuple[Ranking, float]
Row = Sequence[Contribution]
# By the ids of memories: named numbers on how each one's words answer the query.
Evidence = Callable[[Sequence[str]], Mapping[str, Mapping[str, float]]]
Refine = Callable[[tuple[Fused, ...], Sequence[Ranking], Evidence | None], tuple[Fused, ...]]


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
    """A way to fuse. `combine` gets only legs that returned something and have a weight above 0, sorted by name.

    `refine`, where a method has one, orders the fused list anew. It may ask for the evidence of the memories' own
    words, which is None where nobody can read them.
    """

    name: str
    combine: Callable[[Options, Sequence[Weighted]], Combination]
    parameters: Mapping[str, Parameter] = field(default_factory=dict)
    refine: Refine | None = None
