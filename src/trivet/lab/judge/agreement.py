"""How far two looks at the same pairs agree: Cohen's kappa with quadratic weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from trivet.lab.judge.pool import Pool
from trivet.lab.judge.record import BEST


class Agreement(msgspec.Struct, frozen=True, kw_only=True):
    """`kappa` is 1 for full agreement and 0 for what chance gives; None where all grades are the same one."""

    pairs: int
    same: int
    kappa: float | None


def agreement(pool: Pool, grades: Mapping[int, int]) -> Agreement:
    """Over the pairs that were judged twice."""
    first: dict[tuple[str, str], int] = {}
    seen: list[tuple[int, int]] = []
    for place, entry in enumerate(pool.entries):
        if place not in grades:
            continue
        pair = (entry.query, entry.document)
        if not entry.again:
            first[pair] = grades[place]
        elif pair in first:
            seen.append((first[pair], grades[place]))
    return Agreement(pairs=len(seen), same=sum(one == other for one, other in seen), kappa=weighted_kappa(seen))


def weighted_kappa(pairs: Sequence[tuple[int, int]], best: int = BEST) -> float | None:
    """1 - observed / expected disagreement, where grades that lie n apart disagree by n squared."""
    if not pairs:
        return None
    observed = sum((one - other) ** 2 for one, other in pairs) / len(pairs)
    firsts, seconds = ([sum(pair[side] == grade for pair in pairs) for grade in range(best + 1)] for side in (0, 1))
    expected = (
        sum((one - other) ** 2 * firsts[one] * seconds[other] for one in range(best + 1) for other in range(best + 1))
        / len(pairs) ** 2
    )
    return 1 - observed / expected if expected else None
