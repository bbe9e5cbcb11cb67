"""Fusion of rankings into one sorted list, configured by a value that parses and prints."""

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
    """A valid method with its options, and leg weights as given."""

    method: str
    options: Options = field(default_factory=Options)

    def __post_init__(self) -> None:
        method = method_named(self.method)
        defaults = {name: parameter.default for name, parameter in method.parameters.items()}
        options = _in_order(method, {**defaults, **self.options})
        Call(self.method, (), options)  # rejects what cannot be printed, such as an infinite weight
        for key, value in options.items():
            _check_option(method, key, value)
        object.__setattr__(self, "options", options)

    def __str__(self) -> str:
        return str(self.call)

    @property
    def call(self) -> Call:
        return Call(self.method, (), self.options)

    @property
    def weights(self) -> dict[str, float]:
        own = method_named(self.method).parameters
        return {
            key: float(value)
            for key, value in self.options.items()
            if key not in own and "." not in key
        }


def parse_fusion(text: str) -> Fusion:
    return fusion_from(parse_call(text))


def fusion_from(call: Call) -> Fusion:
    if call.arguments:
        first = print_value(call.arguments[0])
        raise InvalidInput(
            f"{call.name} takes named options only, not {first!r}; "
            f"{_known(method_named(call.name))}"
        )
    return Fusion(call.name, call.options)


def _in_order(method: Method, options: Mapping[str, Scalar]) -> Options:
    # Canonical order, so that equal fusions print alike.
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
            f"{method.name}: {key} is read as the weight of a leg and must be a number of 0 or "
            f"more, not {print_value(value)!r}; {_known(method)}"
        )


def _parameter_of(method: Method, key: str) -> Parameter | None:
    name, dot, _ = key.partition(".")
    parameter = method.parameters.get(name)
    return None if parameter is None or (dot and not parameter.per_leg) else parameter


def _known(method: Method) -> str:
    names = list(method.parameters)
    names += [f"{name}.<leg>" for name, parameter in method.parameters.items() if parameter.per_leg]
    return (
        f"{method.name} knows {', '.join([*names, '<leg>'])}, "
        "where <leg>=number is the weight of a leg"
    )


def fuse(fusion: Fusion, rankings: Sequence[Ranking]) -> tuple[Fused, ...]:
    """Return the fused hits, best first, scored 0 to 1; ties break by best rank, then id."""
    check_all(rankings)
    legs = weigh(fusion.weights, rankings)
    return merge(method_named(fusion.method).combine(fusion.options, legs))


# Beyond this, the difference of two scores could overflow.
MAX_SCORE = 1e300


def check(ranking: Ranking) -> None:
    """Raise LegFailed unless scores are finite, above the floor and sorted, and ids unique."""
    floor, candidates = ranking.floor, ranking.candidates
    if not -MAX_SCORE <= floor <= MAX_SCORE:
        raise LegFailed(
            f"leg {ranking.leg!r} declares the floor {floor}; it must be a finite number"
        )
    scores = [MAX_SCORE, *(candidate.score for candidate in candidates), floor]
    # NaN compares false.
    falls = all(map(ge, scores, scores[1:]))
    if not falls or len({candidate.id for candidate in candidates}) < len(candidates):
        raise LegFailed(f"leg {ranking.leg!r}: {_broken(candidates, floor)}")


def check_all(rankings: Sequence[Ranking]) -> None:
    legs: set[str] = set()
    for ranking in rankings:
        if ranking.leg in legs:
            raise InvalidInput(
                f"two rankings have the leg name {ranking.leg!r}; give each leg its own name"
            )
        legs.add(ranking.leg)
        check(ranking)


def _broken(candidates: Sequence[Candidate], floor: float) -> str:
    seen: set[str] = set()
    previous = MAX_SCORE
    for candidate in candidates:
        if candidate.id in seen:
            return f"memory {candidate.id!r} was returned twice"
        if not math.isfinite(candidate.score) or abs(candidate.score) > MAX_SCORE:
            return f"memory {candidate.id!r} has the score {candidate.score}, which is out of range"
        if candidate.score < floor:
            return (
                f"memory {candidate.id!r} has the score {candidate.score}, "
                f"below the declared floor {floor}"
            )
        if candidate.score > previous:
            break
        seen.add(candidate.id)
        previous = candidate.score
    return (
        f"memory {candidate.id!r} has the score {candidate.score}, above the one before it: "
        "the ranking is not sorted"
    )


DEFAULT_LEG_WEIGHT = 1.0


def weigh(weights: Mapping[str, float], rankings: Sequence[Ranking]) -> tuple[Weighted, ...]:
    """Return the legs with hits and positive weight, by name; weights sum to 1."""
    pairs = [(ranking, weights.get(ranking.leg, DEFAULT_LEG_WEIGHT)) for ranking in rankings]
    if pairs and not any(weight for _, weight in pairs):
        raise InvalidInput("every leg has the weight 0; give at least one leg a weight above 0")
    active = [(ranking, weight) for ranking, weight in pairs if weight and ranking.candidates]
    # Independent of the order of answers.
    active.sort(key=lambda pair: pair[0].leg)
    return _shares(active)


def _shares(active: Sequence[Weighted]) -> tuple[Weighted, ...]:
    # Divide by the heaviest first: the sum of huge weights would overflow.
    heaviest = max((weight for _, weight in active), default=1.0)
    total = math.fsum(weight / heaviest for _, weight in active)
    return tuple((ranking, weight / heaviest / total) for ranking, weight in active)


def merge(combination: Combination) -> tuple[Fused, ...]:
    """Return every memory of any leg once, best first."""
    legs = [[candidate.id for candidate in part.ranking.candidates] for part in combination.parts]
    ids = _in_tie_order(legs)
    columns = [_column(part, leg, ids) for part, leg in zip(combination.parts, legs, strict=True)]
    rows = list(zip(*columns, strict=True))
    raw = combination.score(rows)
    scores = _clipped(raw) if combination.bounded else _stretched(raw)
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
    # Rounding can push a sum of shares above 1.
    return [min(score, 1.0) for score in scores] if max(scores, default=0.0) > 1.0 else scores


def _stretched(scores: Sequence[float]) -> Sequence[float]:
    worst, best = min(scores, default=0.0), max(scores, default=0.0)
    if worst == best:
        return [1.0] * len(scores)
    span = best - worst
    return [(score - worst) / span for score in scores]
