"""Paired comparison of runs: bootstrap intervals, the randomization test and Holm's correction."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from trivet.errors import InvalidInput
from trivet.lab.measure.measures import Measured

Matrix: TypeAlias = NDArray[np.float64]

# 200 resamples of 2,000 queries take 3 MB, which fits into the processor's cache.
CHUNK = 200
# Relative difference of equal sums added in another order.
ROUNDING = 1e-12


def bootstrap_means(columns: Matrix, resamples: int, seed: int) -> Matrix:
    """Return each resample's column means; all columns share the resamples."""
    generator = np.random.default_rng([seed, 0])
    rows = len(columns)
    means = []
    for size in _chunks(resamples):
        drawn = generator.integers(0, rows, (size, rows)) + np.arange(size)[:, None] * rows
        # Counts times values: far cheaper than gathering the values themselves.
        counts = (
            np.bincount(drawn.ravel(), minlength=size * rows).reshape(size, rows).astype(np.float64)
        )
        means.append(counts @ columns / rows)
    return np.concatenate(means)


def intervals(means: Matrix, confidence: float) -> list[tuple[float, float]]:
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, (tail, 1 - tail), axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def randomisation_p_values(columns: Matrix, resamples: int, seed: int) -> list[float]:
    """Return p-values from random sign flips; exact if a column has few enough flips."""
    generator = np.random.default_rng([seed, 1])
    # The observed signs are one of the flips, so p is never 0.
    extreme = np.ones(columns.shape[1])
    for size in _chunks(resamples):
        flips = generator.integers(0, 2, (size, len(columns)), dtype=np.uint8).astype(np.float64)
        extreme += _count_extreme_flips(columns, flips)
    sampled = (extreme / (resamples + 1)).tolist()
    return [
        _exact(column, resamples) or value for column, value in zip(columns.T, sampled, strict=True)
    ]


def _exact(column: NDArray[np.float64], most: int) -> float | None:
    moved = column[column != 0]  # A zero has no sign to flip.
    if 2 ** len(moved) > most:
        return None
    flips = (np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved)) & 1).astype(np.float64)
    return float(_count_extreme_flips(moved[:, None], flips)[0] / len(flips))


def _count_extreme_flips(columns: Matrix, flips: Matrix) -> NDArray[np.float64]:
    total = columns.sum(axis=0)
    bound = np.abs(total) - ROUNDING * np.abs(columns).sum(axis=0)
    reached: NDArray[np.bool_] = np.abs(total - 2 * (flips @ columns)) >= bound
    counted: NDArray[np.float64] = reached.sum(axis=0, dtype=np.float64)
    return counted


def _chunks(resamples: int) -> Iterator[int]:
    for start in range(0, resamples, CHUNK):
        yield min(CHUNK, resamples - start)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Correct p-values for their number, keeping the family-wise error rate."""
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, position in enumerate(sorted(range(len(p_values)), key=lambda one: p_values[one])):
        highest = max(highest, min(1.0, p_values[position] * (len(p_values) - rank)))
        corrected[position] = highest
    return tuple(corrected)


Vector: TypeAlias = NDArray[np.float64]

RESAMPLES = 10_000
CONFIDENCE = 0.95
ALPHA = 0.05
POWER = 0.8
MOST_MOVED = 10
# Values closer than this are equal.
TIE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Move:
    query: str
    base: float
    candidate: float

    @property
    def difference(self) -> float:
        return self.candidate - self.base


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Candidate minus base in one measure over one set of queries.

    `corrected_p` is after Holm's correction within the family. `detectable` is the smallest true
    difference this many queries show in four of five trials.
    """

    measure: str
    stratum: str | None
    queries: int
    base: float
    candidate: float
    difference: float
    low: float
    high: float
    p: float
    corrected_p: float
    detectable: float | None
    wins: int
    losses: int
    ties: int
    moved: tuple[Move, ...]


@dataclass(frozen=True, kw_only=True)
class Compared:
    overall: Mapping[str, Comparison]
    by_stratum: Mapping[str, Mapping[str, Comparison]]


def compare(
    base: Measured, candidate: Measured, measures: Iterable[str] | None = None, *, seed: int = 0
) -> Compared:
    """Compare two runs; overall values are one family of tests, all strata another."""
    names = (
        tuple(measures)
        if measures is not None
        else tuple(one for one in base.per_query if one in candidate.per_query)
    )
    absent = [one for one in names if one not in base.per_query or one not in candidate.per_query]
    if absent or not names:
        raise InvalidInput(
            f"Measure {absent[0]!r} was not taken on both sides."
            if absent
            else "No measure in common."
        )
    before = {name: base.per_query[name] for name in names}
    after = {name: candidate.per_query[name] for name in names}
    overall = correct(paired(before, after, seed=seed))
    strata = [
        paired(_only(before, queries), _only(after, queries), stratum=stratum, seed=seed)
        for stratum, queries in base.strata.items()
    ]
    corrected = iter(correct([one for group in strata for one in group]))
    return Compared(
        overall={one.measure: one for one in overall},
        by_stratum={stratum: {name: next(corrected) for name in names} for stratum in base.strata},
    )


def correct(family: Sequence[Comparison]) -> list[Comparison]:
    """Set `corrected_p` over all comparisons, such as a sweep."""
    return [
        replace(one, corrected_p=value)
        for one, value in zip(family, holm([one.p for one in family]), strict=True)
    ]


def paired(
    base: Mapping[str, Mapping[str, float]],
    candidate: Mapping[str, Mapping[str, float]],
    *,
    stratum: str | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> list[Comparison]:
    """Compare values by measure and query; `corrected_p` is still `p`."""
    pairs = {name: _vectors(name, values, candidate.get(name, {})) for name, values in base.items()}
    columns = np.column_stack([after - before for before, after in pairs.values()])
    bounds = intervals(bootstrap_means(columns, resamples, seed), CONFIDENCE)
    p_values = randomisation_p_values(columns, resamples, seed)
    return [
        _comparison(name, stratum, sorted(base[name]), before, after, bound, p)
        for (name, (before, after)), bound, p in zip(pairs.items(), bounds, p_values, strict=True)
    ]


def detectable(differences: Vector) -> float | None:
    """Return the smallest mean difference found at ALPHA with POWER (paired t)."""
    if len(differences) < 2 or np.ptp(differences) == 0:
        return None
    # The quantile of Student's t. Imported here because it slows the start of the command line.
    from scipy.special import stdtrit

    freedom = len(differences) - 1
    reach = stdtrit(freedom, 1 - ALPHA / 2) + stdtrit(freedom, POWER)
    return float(reach * np.std(differences, ddof=1) / math.sqrt(len(differences)))


def _comparison(
    name: str,
    stratum: str | None,
    queries: Sequence[str],
    before: Vector,
    after: Vector,
    bound: tuple[float, float],
    p: float,
) -> Comparison:
    differences = after - before
    return Comparison(
        measure=name,
        stratum=stratum,
        queries=len(queries),
        base=float(before.mean()),
        candidate=float(after.mean()),
        difference=float(differences.mean()),
        low=bound[0],
        high=bound[1],
        p=p,
        corrected_p=p,
        detectable=detectable(differences),
        wins=int(np.count_nonzero(differences > TIE)),
        losses=int(np.count_nonzero(differences < -TIE)),
        ties=int(np.count_nonzero(np.abs(differences) <= TIE)),
        moved=_most_moved(queries, before, after),
    )


def _most_moved(queries: Sequence[str], before: Vector, after: Vector) -> tuple[Move, ...]:
    order = np.argsort(-np.abs(after - before), kind="stable")[:MOST_MOVED]
    return tuple(
        Move(query=queries[one], base=float(before[one]), candidate=float(after[one]))
        for one in order
        if abs(after[one] - before[one]) > TIE
    )


def _vectors(
    name: str, before: Mapping[str, float], after: Mapping[str, float]
) -> tuple[Vector, Vector]:
    """Order both sides by query id, whatever the order in the run file."""
    if before.keys() != after.keys():
        query = min(before.keys() ^ after.keys())
        raise InvalidInput(
            f"{name}: query {query!r} was measured on one side only. Compare runs over the same "
            "queries."
        )
    if not before:
        raise InvalidInput(f"{name}: there is no query to compare.")
    order = sorted(before)
    for side in (before, after):
        for query in order:
            if not math.isfinite(side[query]):
                raise InvalidInput(
                    f"{name}: query {query!r} has the value {side[query]}, which is not a number."
                )
    return np.array([before[one] for one in order]), np.array([after[one] for one in order])


def _only(
    values: Mapping[str, Mapping[str, float]], queries: Sequence[str]
) -> dict[str, dict[str, float]]:
    return {
        name: {query: by_query[query] for query in queries} for name, by_query in values.items()
    }


# Ranks arms: it considers both order and grades.
HEADLINE = "nDCG@10"


def against(
    base: Measured, candidates: Sequence[Measured], measure: str = HEADLINE
) -> list[Comparison]:
    """Compare candidates with the base as one family."""
    if not candidates:
        return []
    before = {str(place): base.per_query[measure] for place in range(len(candidates))}
    after = {str(place): one.per_query[measure] for place, one in enumerate(candidates)}
    return [replace(one, measure=measure) for one in correct(paired(before, after))]


DIFFERENCE_COLUMNS = ("difference", "95 % interval", "p (Holm)")
COMPARISON_COLUMNS = (*DIFFERENCE_COLUMNS, "detectable", "wins", "losses", "ties")


def interval_text(low: float, high: float) -> str:
    return f"{low:+.4f} to {high:+.4f}"


class TestedDifference(Protocol):
    @property
    def difference(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...
    @property
    def corrected_p(self) -> float: ...


def difference_cells(one: TestedDifference) -> tuple[str, str, str]:
    return f"{one.difference:+.4f}", interval_text(one.low, one.high), f"{one.corrected_p:.4f}"


def comparison_cells(one: Comparison, unknown: str) -> tuple[str, ...]:
    return (
        *difference_cells(one),
        unknown if one.detectable is None else f"{one.detectable:.4f}",
        str(one.wins),
        str(one.losses),
        str(one.ties),
    )
