"""New scores for the head of a fused list, on the scale that its old ones had."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.types import Fused


def rescaled(values: Sequence[float], head: Sequence[Fused], rest: Sequence[Fused]) -> list[float]:
    """The values stretched over the scores of `head`, so that they stay above the rest and compare with it as before.

    Candidates whose scores were all alike get the room down to the next one below them.
    """
    low, high = head[-1].score, head[0].score
    if low == high:
        low = rest[0].score if rest else 0.0
    least, most = min(values), max(values)
    if least == most:
        return [high] * len(values)
    # The largest may pass `high` by a rounding.
    return [min(high, low + (value - least) / (most - least) * (high - low)) for value in values]
