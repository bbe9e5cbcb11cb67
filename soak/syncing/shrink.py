"""Shrink a failing history to the fewest steps that still fail.

Every step draws from its own seed, so removing one does not change the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def shrunk(steps: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """Return the remaining steps. Removes halves first, then ever smaller parts."""
    kept, size = list(steps), max(1, len(steps) // 2)
    while True:
        shorter = _without_parts(kept, size, fails)
        if len(shorter) == len(kept) and size == 1:
            return kept
        size = (
            max(1, size // 2) if len(shorter) == len(kept) else min(size, max(1, len(shorter) // 2))
        )
        kept = shorter


def _without_parts(kept: list[int], size: int, fails: Callable[[Sequence[int]], bool]) -> list[int]:
    start = 0
    while start < len(kept):
        trial = kept[:start] + kept[start + size :]
        if fails(trial):
            kept = trial
        else:
            start += size
    return kept
