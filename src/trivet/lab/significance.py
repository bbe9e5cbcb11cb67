"""Is a difference more than chance? Bootstrap intervals, the randomisation test and Holm's correction.

The same seed gives the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Matrix: TypeAlias = NDArray[np.float64]

# Rows of resamples held at once: 200 of 2,000 queries take 3 MB, which stays in the processor's cache.
CHUNK = 200
# Two sums of the same differences in another order may differ by this much and are still the same sum.
ROUNDING = 1e-12


def bootstrap_means(columns: Matrix, resamples: int, seed: int) -> Matrix:
    """The mean of each column (differences, a query a row) in each resample of the rows, a resample a row.

    All columns share the resamples, so a column's means do not depend on which others are there.
    """
    generator = np.random.default_rng([seed, 0])
    rows = len(columns)
    means = []
    for size in _chunks(resamples):
        drawn = generator.integers(0, rows, (size, rows)) + np.arange(size)[:, None] * rows
        # How often each row was drawn, times its value: far cheaper than gathering the values themselves.
        counts = np.bincount(drawn.ravel(), minlength=size * rows).reshape(size, rows).astype(np.float64)
        means.append(counts @ columns / rows)
    return np.concatenate(means)


def intervals(means: Matrix, confidence: float) -> list[tuple[float, float]]:
    """The percentile interval of each column that holds that share of its resampled means."""
    tail = (1 - confidence) / 2
    low, high = np.quantile(means, (tail, 1 - tail), axis=0)
    return list(zip(low.tolist(), high.tolist(), strict=True))


def randomisation_p_values(columns: Matrix, resamples: int, seed: int) -> list[float]:
    """Two-sided, for each column: how often its differences, with signs at random, sum to as much as those seen.

    Where a column has no more signings than `resamples`, each is tried once and the result is exact.
    """
    generator = np.random.default_rng([seed, 1])
    extreme = np.ones(columns.shape[1])  # the signs seen are one of the signings: a p of 0 could not be defended
    for size in _chunks(resamples):
        flips = generator.integers(0, 2, (size, len(columns)), dtype=np.uint8).astype(np.float64)
        extreme += _as_extreme(columns, flips)
    sampled = (extreme / (resamples + 1)).tolist()
    return [_exact(column, resamples) or value for column, value in zip(columns.T, sampled, strict=True)]


def _exact(column: NDArray[np.float64], most: int) -> float | None:
    """The share among all signings, or None if they are too many to try. It is never 0: the signs seen are one."""
    moved = column[column != 0]  # a zero has no sign to flip
    if 2 ** len(moved) > most:
        return None
    flips = (np.arange(2 ** len(moved))[:, None] >> np.arange(len(moved)) & 1).astype(np.float64)
    return float(_as_extreme(moved[:, None], flips)[0] / len(flips))


def _as_extreme(columns: Matrix, flips: Matrix) -> NDArray[np.float64]:
    """For each column, how many of the flips (1 turns a sign, 0 leaves it) give a sum as far from 0 as the real one."""
    total = columns.sum(axis=0)
    bound = np.abs(total) - ROUNDING * np.abs(columns).sum(axis=0)
    reached: NDArray[np.bool_] = np.abs(total - 2 * (flips @ columns)) >= bound
    counted: NDArray[np.float64] = reached.sum(axis=0, dtype=np.float64)
    return counted


def _chunks(resamples: int) -> Iterator[int]:
    for start in range(0, resamples, CHUNK):
        yield min(CHUNK, resamples - start)


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """Corrects p-values for how many there are, so that the chance of any false find stays at alpha.

    The values keep their order: the smallest is multiplied by n, the next by n - 1, ..., never decreasing.
    """
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, position in enumerate(sorted(range(len(p_values)), key=lambda one: p_values[one])):
        highest = max(highest, min(1.0, p_values[position] * (len(p_values) - rank)))
        corrected[position] = highest
    return tuple(corrected)
