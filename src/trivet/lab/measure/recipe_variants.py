"""Sweeps over recipe parameters, and ablations of a recipe's parts."""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec

from trivet.errors import InvalidInput
from trivet.lab.datasets.read_files import content
from trivet.lab.measure.bench import Bench
from trivet.lab.measure.comparison import HEADLINE, Comparison, against
from trivet.lab.measure.complete_retrieval import left_out
from trivet.lab.measure.hit_analysis import Overlap, Rules, apply_fusion_rules, overlap
from trivet.lab.measure.run import Arm, environment, run_arm
from trivet.search.legs.registry import legs
from trivet.search.recipe import Recipe, parse_recipe
from trivet.types import Progress

# Deep enough for every measure of a sweep, and several times faster than a full run.
SWEEP_DEPTH = 20
SWEEP_MEASURES = ("recall@5", "recall@10", "nDCG@10", "MRR", "any@5", "all@5")

_slot = re.compile(r"\{(\w+)\}")


class Point(msgspec.Struct, frozen=True):
    values: Mapping[str, str]
    recipe: str


def grid(template: str, values: Mapping[str, Sequence[str]]) -> list[Point]:
    """Return every combination for a template such as `rrf(k={k}) | depth({depth})`."""
    slots = list(dict.fromkeys(_slot.findall(template)))
    if set(slots) != set(values):
        missing = ", ".join(sorted(set(slots) ^ set(values)))
        raise InvalidInput(
            f"The template {template!r} and the given values do not agree on: {missing}."
        )
    points = []
    for combination in itertools.product(*(values[slot] for slot in slots)):
        chosen = dict(zip(slots, combination, strict=True))
        filled = _slot.sub(lambda match, chosen=chosen: chosen[match[1]], template)  # type: ignore[misc]
        recipe = str(parse_recipe(filled))
        points.append(Point(chosen, recipe))
    return points


def sweep(bench: Bench, points: Sequence[Point], progress: Progress | None = None) -> list[Arm]:
    return [
        run_arm(bench, point.recipe, SWEEP_MEASURES, SWEEP_DEPTH, progress, collapse=False)
        for point in points
    ]


class Difference(msgspec.Struct, frozen=True):
    """Difference from the first point, with Holm's correction over the grid."""

    difference: float
    low: float
    high: float
    corrected_p: float


class SweptPoint(msgspec.Struct, frozen=True):
    values: dict[str, str]
    recipe: str
    overall: dict[str, float]
    by_stratum: dict[str, dict[str, float]]
    against_base: Difference | None = None


class Sweep(msgspec.Struct, frozen=True, kw_only=True):
    kind: Literal["sweep"] = "sweep"
    template: str
    varied: dict[str, list[str]]
    dataset: str
    dataset_sha256: str
    points: list[SweptPoint]
    environment: dict[str, Any]


def summarise(
    bench: Bench,
    template: str,
    varied: Mapping[str, Sequence[str]],
    points: Sequence[Point],
    arms: Sequence[Arm],
) -> Sweep:
    compared = against(arms[0].measured, [arm.measured for arm in arms[1:]])
    differences = [
        None,
        *(Difference(one.difference, one.low, one.high, one.corrected_p) for one in compared),
    ]
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


def read_sweeps(folder: Path) -> dict[str, Sweep]:
    """Return the sweeps of a folder by file name; ignore other JSON files."""
    found: dict[str, Sweep] = {}
    for path in sorted(folder.glob("*.json")):
        data = content(path)
        try:
            value = msgspec.json.decode(data)
            if isinstance(value, dict) and value.get("kind") == "sweep":
                found[path.stem] = msgspec.convert(value, Sweep)
        except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
            raise InvalidInput(
                f"{path}: {error}. Give a file that `trivet lab sweep` wrote."
            ) from None
    return found


WHOLE = "whole"
WITHOUT = "without "
# Number of hits in which overlap is measured.
OVERLAP_DEPTH = 10


class Ablation(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    recipe: str
    overall: Mapping[str, float]
    by_stratum: Mapping[str, Mapping[str, float]]
    against_whole: Comparison | None = None


class LegOverlap(msgspec.Struct, frozen=True, kw_only=True):
    leg: str
    overlap: Overlap
    rules: Rules


class Ablated(msgspec.Struct, frozen=True, kw_only=True):
    kind: Literal["ablation"] = "ablation"
    dataset: str
    dataset_sha256: str
    config: str
    recipe: str
    embedder: str | None
    left_out: tuple[str, ...]
    ablations: list[Ablation]
    overlaps: list[LegOverlap]
    environment: dict[str, Any]


def ablations(config: str) -> dict[str, str]:
    whole = parse_recipe(config)
    arms = {WHOLE: whole}
    if len(whole.legs) > 1:
        for leg in whole.legs:
            rest = tuple(other for other in whole.legs if other != leg)
            arms[f"{WITHOUT}{leg}"] = msgspec.structs.replace(whole, legs=rest)
    if whole.bonus:
        arms["without bonus"] = msgspec.structs.replace(whole, bonus=0.0)
    if whole.prior:
        arms["without prior"] = msgspec.structs.replace(whole, prior=0.0)
    if whole.time:
        arms["without time"] = msgspec.structs.replace(whole, time=0.0)
    if whole.match != "any":
        arms["any words"] = msgspec.structs.replace(whole, match="any")
    return {name: str(recipe) for name, recipe in arms.items()}


def single_leg_recipes(config: str) -> dict[str, str]:
    """Return a recipe per leg, except for legs that start from others' hits."""
    whole = parse_recipe(config)
    able = [leg.name for leg in legs() if leg.name in whole.legs and not leg.after_others]
    return (
        {leg: str(msgspec.structs.replace(whole, legs=(leg,))) for leg in able}
        if len(whole.legs) > 1
        else {}
    )


def runnable_recipe(bench: Bench, config: str) -> Recipe:
    """Return the recipe without legs that need a missing embedder."""
    recipe = parse_recipe(config)
    absent = left_out(bench.trivet.engine, recipe)
    return msgspec.structs.replace(
        recipe, legs=tuple(leg for leg in recipe.legs if leg not in absent)
    )


def ablate(bench: Bench, config: str, progress: Progress | None = None) -> Ablated:
    recipe = str(runnable_recipe(bench, config))
    arms = {
        part: run_arm(bench, one, SWEEP_MEASURES, progress=progress)
        for part, one in ablations(recipe).items()
    }
    whole, *rest = arms.values()
    compared = [None, *against(whole.measured, [arm.measured for arm in rest])]
    alone = {
        leg: run_arm(bench, one, SWEEP_MEASURES, progress=progress)
        for leg, one in single_leg_recipes(recipe).items()
    }
    serving = bench.trivet.engine.embedding.serving()
    return Ablated(
        dataset=bench.dataset.name,
        dataset_sha256=bench.dataset.fingerprint,
        config=config,
        recipe=whole.recipe,
        embedder=serving.identity if serving else None,
        left_out=left_out(bench.trivet.engine, parse_recipe(config)),
        ablations=[
            Ablation(
                name=part,
                recipe=arm.recipe,
                overall=arm.measured.overall,
                by_stratum=arm.measured.by_stratum,
                against_whole=comparison,
            )
            for (part, arm), comparison in zip(arms.items(), compared, strict=True)
        ],
        overlaps=[_overlap(bench, leg, arms[f"{WITHOUT}{leg}"], arm) for leg, arm in alone.items()],
        environment=environment(),
    )


def _overlap(bench: Bench, leg: str, rest: Arm, alone: Arm) -> LegOverlap:
    found = overlap(bench.dataset, rest.run, alone.run, OVERLAP_DEPTH)
    return LegOverlap(leg=leg, overlap=found, rules=apply_fusion_rules(found))
