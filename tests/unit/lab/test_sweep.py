"""Ablations contain the whole recipe and the recipe without each part."""

from __future__ import annotations

import pytest

from trivet.lab.measure.recipe_variants import ablations


@pytest.mark.parametrize(
    ("legs", "without"),
    [
        ("legs(lexical)", []),  # without its only leg, a recipe finds nothing
        ("legs(lexical, dense)", ["without dense", "without lexical"]),
        ("legs(lexical, dense, graph)", ["without dense", "without graph", "without lexical"]),
    ],
)
def test_each_leg_is_removed_if_others_remain(legs: str, without: list[str]) -> None:
    arms = ablations(f"rrf(k=60) | {legs} | bonus(0) | prior(0) | time(0) | match(any)")
    assert sorted(arms) == sorted(["whole", *without])


def test_present_steps_are_removed() -> None:
    arms = ablations("rrf(k=60) | legs(lexical) | bonus(0.1) | prior(0.3) | match(all-then-any)")
    assert {"whole", "without bonus", "without prior", "without time"} < set(arms)
    assert "bonus(0.1)" in arms["without prior"]
    assert "bonus(0.1)" not in arms["without bonus"]
