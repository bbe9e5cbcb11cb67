"""A history that fails, made small: the fewest steps of its seed that still fail.

Every step draws from a seed of its own, so leaving one out changes nothing about the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence


def shrunk(steps: Sequence[int], fails: Callable[[Sequence[int]], bool]) -> list[int]:
    """Steps without which it no longer fails. Leaves out halves first, then ever smaller parts, until none can go."""
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
