"""A fusion as a value that is read from a string and prints back to it.

What every leg promises about its ranking. A broken promise is an error of that leg, never a strange result.

From rankings to one sorted list: which legs take part, what each says of a memory, its score, the order.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import ge

from trivet.errors import InvalidInput, LegFailed
from trivet.search.fuse.grammar import Call, Options, Scalar, parse_call, print_value
from trivet.search.fuse.methods import (
    Combination,
    Method,
    Parameter,
    Part,
    Weighted,
    method_named,
    parameter_names,
)
from trivet.types import Candidate, Contribution, Fused, Ranking


@dataclass(frozen=True, slots=True)
class Fusion:
    """A method and its options: the method's own ones all spelled out, leg weights as given. Never invalid."""

    method: str
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        method = method_named(self.method)
        defaults = {name: parameter.default for name, parameter in method.parameters.items()}
        options = _in_order(method, {**defaults, **self.options})
        Call(
            self.method, (), options
        )  # refuses what could not be printed, such as an infinite weight
        for key, value in options.items():
            _check_option(method, key, value)
        object.__setattr__(self, "options", options)

    def __str__(self) -> str:
        return str(self.call)

    @property
    def call(self) -> Call:
        """The same thing as a step of a recipe."""
        return Call(self.method, (), self.options)

    @property
    def weights(self) -> dict[str, float]:
        """The weights given by leg; a leg that is not named has 1."""
        own = method_named(self.method).parameters
        return {
            key: float(value)
            for key, value in self.options.items()
            if key not in own and "." not in key
        }


def parse_fusion(text: str) -> Fusion:
    """Read `convex(norm=zscore, dense=2)` and the like."""
    return fusion_from(parse_call(text))


def fusion_from(call: Call) -> Fusion:
    """Make a fusion of a step that was already read, for instance out of a longer recipe."""
    if call.arguments:
        first = print_value(call.arguments[0])
        raise InvalidInput(
            f"{call.name} takes named options only, not {first!r}; {_known(method_named(call.name))}"
        )
    return Fusion(call.name, call.options)


def _in_order(method: Method, options: Mapping[str, Scalar]) -> Options:
    # One order for all, so that equal fusions print alike: the method's own, then per leg, then weights.
    def place(key: str) -> tuple[bool, bool, str]:
        return (key not in method.parameters, "." not in key, key)

    return Options((key, options[key]) for key in sorted(options, key=place))


def _check_option(method: Method, key: str, value: Scalar) -> None:
    parameter = _parameter_of(method, key)
    if parameter is not None:
        if not parameter.accepts(value):
            raise InvalidInput(
                f"{method.name}: {key} must be {parameter.expected}, not {print_value(value)!r}"
            )
    elif "." in key or key in parameter_names():
        raise InvalidInput(f"{method.name} has no option {key!r}; {_known(method)}")
    elif isinstance(value, str) or not value >= 0:
        raise InvalidInput(
            f"{method.name}: {key} is taken for the weight of a leg and must be a number of 0 or more, "
            f"not {print_value(value)!r}; {_known(method)}"
        )


def _parameter_of(method: Method, key: str) -> Parameter | None:
    name, dot, _ = key.partition(".")
    parameter = method.parameters.get(name)
    return None if parameter is None or (dot and not parameter.per_leg) else parameter


def _known(method: Method) -> str:
    names = list(method.parameters)
    names += [f"{name}.<leg>" for name, parameter in method.parameters.items() if parameter.per_leg]
    return f"{method.name} knows {', '.join([*names, '<leg>'])}, where <leg>=number is the weight of a leg"


def fuse(fusion: Fusion, rankings: Sequence[Ranking]) -> tuple[Fused, ...]:
    """Fuse what the legs returned, best first, scores on 0..1. Ties break by best rank in any leg, then by id."""
    check_all(rankings)
    legs = weigh(fusion.weights, rankings)
    return merge(method_named(fusion.method).combine(fusion.options, legs))


# Above this the difference of two scores could overflow to infinity.
MAX_SCORE = 1e300


def check(ranking: Ranking) -> None:
    """Raise LegFailed unless scores are finite, at or above the floor and best first, and ids are given once."""
    floor, candidates = ranking.floor, ranking.candidates
    if not -MAX_SCORE <= floor <= MAX_SCORE:
        raise LegFailed(
            f"leg {ranking.leg!r} declares the floor {floor}; it must be a finite number"
        )
    scores = [MAX_SCORE, *(candidate.score for candidate in candidates), floor]
    # NaN compares false with everything.
    falls = all(map(ge, scores, scores[1:]))
    if not falls or len({candidate.id for candidate in candidates}) < len(candidates):
        raise LegFailed(f"leg {ranking.leg!r}: {_broken(candidates, floor)}")


def check_all(rankings: Sequence[Ranking]) -> None:
    """Check each ranking, and that no two call themselves by the same leg name."""
    legs: set[str] = set()
    for ranking in rankings:
        if ranking.leg in legs:
            raise InvalidInput(
                f"two rankings are of leg {ranking.leg!r}; give each leg one name and one ranking"
            )
        legs.add(ranking.leg)
        check(ranking)


def _broken(candidates: Sequence[Candidate], floor: float) -> str:
    """What is wrong with the first that breaks a promise."""
    seen: set[str] = set()
    previous = MAX_SCORE
    for candidate in candidates:
        if candidate.id in seen:
            return f"memory {candidate.id!r} was returned twice"
        if not math.isfinite(candidate.score) or abs(candidate.score) > MAX_SCORE:
            return f"memory {candidate.id!r} has the score {candidate.score}, which is not a finite number in range"
        if candidate.score < floor:
            return f"memory {candidate.id!r} has the score {candidate.score}, below the declared floor {floor}"
        if candidate.score > previous:
            break
        seen.add(candidate.id)
        previous = candidate.score
    return f"memory {candidate.id!r} has the score {candidate.score}, above the one before it: not sorted best first"


DEFAULT_LEG_WEIGHT = 1.0


def weigh(weights: Mapping[str, float], rankings: Sequence[Ranking]) -> tuple[Weighted, ...]:
    """The legs that returned something and have a weight, by name; their shares add up to 1."""
    pairs = [(ranking, weights.get(ranking.leg, DEFAULT_LEG_WEIGHT)) for ranking in rankings]
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
    return Contribution(
        leg=ranking.leg, rank=None, score=ranking.floor, normalised=part.missing, weight=part.weight
    )


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
