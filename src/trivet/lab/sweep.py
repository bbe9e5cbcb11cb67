"""Measures many recipes on one dataset: every combination of given values.

A sweep is kept as a file: every point with its values, and how it compares with the first point.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.bench import Bench
from trivet.lab.compare import HEADLINE, against
from trivet.lab.read_files import content
from trivet.lab.run import Arm, environment, run_arm
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


class Difference(msgspec.Struct, frozen=True):
    """Against the first point of the grid: 95 % interval, p after Holm's correction over the whole grid."""

    difference: float
    low: float
    high: float
    corrected_p: float


class SweptPoint(msgspec.Struct, frozen=True):
    """One combination of values. The first of the grid is the base and is compared with nothing."""

    values: dict[str, str]
    recipe: str
    overall: dict[str, float]
    by_stratum: dict[str, dict[str, float]]
    against_base: Difference | None = None


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    """A grid that was measured, its points from the best to the worst."""

    kind: Literal["sweep"] = "sweep"
    template: str
    varied: dict[str, list[str]]
    dataset: str
    dataset_sha256: str
    points: list[SweptPoint]
    environment: dict[str, Any]


def summarise(
    bench: Bench, template: str, varied: Mapping[str, Sequence[str]], points: Sequence[Point], arms: Sequence[Arm]
) -> Sweep:
    compared = against(arms[0].measured, [arm.measured for arm in arms[1:]])
    differences = [None, *(Difference(one.difference, one.low, one.high, one.corrected_p) for one in compared)]
    swept = [
        SweptPoint(
            values=dict(point.values),
            recipe=point.recipe,
            overall=dict(arm.measured.overall),
            by_stratum={stratum: dict(means) for stratum, means in arm.measured.by_stratum.items()},
            against_base=difference,
        )
        for point, arm, difference in zip(points, arms, differences, strict=True)
    ]
    return Sweep(
        template=template,
        varied={name: list(values) for name, values in varied.items()},
        dataset=bench.dataset.name,
        dataset_sha256=bench.dataset.fingerprint,
        points=sorted(swept, key=lambda point: -point.overall[HEADLINE]),
        environment=environment(),
    )


def encode_sweep(sweep: Sweep) -> str:
    return msgspec.json.format(msgspec.json.encode(sweep), indent=1).decode()


def read_sweeps(folder: Path) -> dict[str, Sweep]:
    """The sweeps among the JSON files of a folder, by the name of their file. Other JSON files are ignored."""
    found: dict[str, Sweep] = {}
    for path in sorted(folder.glob("*.json")):
        data = content(path)
        try:
            value = msgspec.json.decode(data)
            if isinstance(value, dict) and value.get("kind") == "sweep":
                found[path.stem] = msgspec.convert(value, Sweep)
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{path}: {error}. It is not a sweep that `trivet lab sweep` has written.") from None
    return found
