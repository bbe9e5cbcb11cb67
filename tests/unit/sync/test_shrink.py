"""A failing history shrinks to its minimal steps."""

from __future__ import annotations

from collections.abc import Sequence

from soak.syncing.shrink import shrunk


def test_shrink_keeps_only_failing_steps() -> None:
    trials = []

    def fails(kept: Sequence[int]) -> bool:
        trials.append(kept)
        return {7, 42, 260} <= set(kept)

    assert shrunk(range(500), fails) == [7, 42, 260]
    assert len(trials) < 120
