"""A history that fails is made as small as it can be."""

from __future__ import annotations

from collections.abc import Sequence

from soak.syncing.shrink import shrunk


def test_what_is_left_is_just_enough_to_fail() -> None:
    trials = []

    def fails(kept: Sequence[int]) -> bool:
        trials.append(kept)
        return {7, 42, 260} <= set(kept)

    assert shrunk(range(500), fails) == [7, 42, 260]
    assert len(trials) < 120
