"""Many recipes over one dataset: every combination of the values given, and ablations of one recipe."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.bench import Bench
from trivet.lab.run import Arm, run_arm
from trivet.search.recipe import parse_recipe
from trivet.types import Progress

# Deep enough for every measure of a sweep, and several times faster than a full run.
SWEEP_DEPTH = 20
SWEEP_MEASURES = ("recall@5", "recall@10", "nDCG@10", "MRR", "any@5", "all@5")

_slot = re.compile(r"\{(\w+)\}")


class Point(msgspec.Struct, frozen=True):
    """One combination: the values it has and the recipe they make."""

    values: Mapping[str, str]
    recipe: str


def grid(template: str, values: Mapping[str, Sequence[str]]) -> list[Point]:
    """Every combination, for a template such as `rrf(k={k}) | depth({depth})`."""
    slots = list(dict.fromkeys(_slot.findall(template)))
    if set(slots) != set(values):
        missing = ", ".join(sorted(set(slots) ^ set(values)))
        raise InvalidInput(f"The template {template!r} and the values given do not agree on: {missing}.")
    points = []
    for combination in itertools.product(*(values[slot] for slot in slots)):
        chosen = dict(zip(slots, combination, strict=True))
        recipe = str(parse_recipe(_slot.sub(lambda match, chosen=chosen: chosen[match[1]], template)))  # type: ignore[misc]
        points.append(Point(chosen, recipe))
    return points


def sweep(bench: Bench, points: Sequence[Point], progress: Progress | None = None) -> list[Arm]:
    return [run_arm(bench, point.recipe, SWEEP_MEASURES, SWEEP_DEPTH, progress, collapse=False) for point in points]


def ablations(config: str) -> dict[str, str]:
    """The recipe itself and the recipe without each of its parts in turn."""
    whole = parse_recipe(config)
    arms = {"whole": whole}
    if len(whole.legs) > 1:
        for leg in whole.legs:
            rest = tuple(other for other in whole.legs if other != leg)
            arms[f"without {leg}"] = msgspec.structs.replace(whole, legs=rest)
    if whole.bonus:
        arms["without bonus"] = msgspec.structs.replace(whole, bonus=0.0)
    if whole.prior:
        arms["without prior"] = msgspec.structs.replace(whole, prior=0.0)
    if whole.match != "any":
        arms["any words"] = msgspec.structs.replace(whole, match="any")
    return {name: str(recipe) for name, recipe in arms.items()}
