"""Holm's correction: the more one tests, the more chance finds; this keeps the chance of any false find at alpha."""

from __future__ import annotations

from collections.abc import Sequence


def holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """The corrected values in the order given: the smallest times n, the next times n - 1, ..., never decreasing."""
    corrected = [0.0] * len(p_values)
    highest = 0.0
    for rank, position in enumerate(sorted(range(len(p_values)), key=lambda one: p_values[one])):
        highest = max(highest, min(1.0, p_values[position] * (len(p_values) - rank)))
        corrected[position] = highest
    return tuple(corrected)
