"""How well stated probabilities match what was relevant, and what refusing answers by them costs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

BINS = 10
# The share of answerable queries that must still be answered.
KEPT = 0.9


@dataclass(frozen=True, slots=True)
class Bin:
    """Hits of about the same stated probability: how many, what was said on average, and how many were relevant."""

    count: int
    stated: float
    true: float


def reliability(stated: Sequence[float], relevant: Sequence[bool], bins: int = BINS) -> list[Bin]:
    """The hits in bins of equal width, empty ones left out."""
    parts: list[list[tuple[float, bool]]] = [[] for _ in range(bins)]
    for probability, truth in zip(stated, relevant, strict=True):
        parts[min(int(probability * bins), bins - 1)].append((probability, truth))
    return [
        Bin(
            len(part),
            math.fsum(probability for probability, _ in part) / len(part),
            sum(truth for _, truth in part) / len(part),
        )
        for part in parts
        if part
    ]


def expected_calibration_error(stated: Sequence[float], relevant: Sequence[bool], bins: int = BINS) -> float:
    """The mean distance between stated and true probability over the bins, weighted by their hits."""
    if not stated:
        return 0.0
    found = reliability(stated, relevant, bins)
    return math.fsum(part.count * abs(part.stated - part.true) for part in found) / len(stated)


def threshold_keeping(answerable: Sequence[float], kept: float = KEPT) -> float:
    """The highest threshold at which that share of answerable queries, by their best probability, is answered."""
    if not answerable:
        return 0.0
    ordered = sorted(answerable, reverse=True)
    return ordered[max(0, math.ceil(kept * len(ordered)) - 1)]


def refused(best: Sequence[float], threshold: float) -> float:
    """The share of queries whose best probability stays below."""
    return sum(probability < threshold for probability in best) / len(best) if best else 0.0
