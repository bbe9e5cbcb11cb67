"""What each part of a recipe is worth: the recipe without it, and where each leg's hits overlap with the others'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from trivet.lab.bench import Bench
from trivet.lab.compare import Comparison, against
from trivet.lab.overlap import Overlap, Rules, by_the_rules, overlap
from trivet.lab.run import Arm, environment, run_arm
from trivet.lab.sweep import SWEEP_MEASURES
from trivet.lab.whole_answers import left_out
from trivet.search.legs.registry import legs
from trivet.search.recipe import Recipe, parse_recipe
from trivet.types import Progress

WHOLE = "whole"
WITHOUT = "without "
# Among so many hits the overlap is looked for.
OVERLAP_DEPTH = 10


class Ablation(msgspec.Struct, frozen=True, kw_only=True):
    """A recipe with a part taken out. The whole recipe is compared with nothing."""

    name: str
    recipe: str
    overall: Mapping[str, float]
    by_stratum: Mapping[str, Mapping[str, float]]
    against_whole: Comparison | None = None


class LegOverlap(msgspec.Struct, frozen=True, kw_only=True):
    """A leg by itself beside the recipe without it, and what the rules of overlap say of it."""

    leg: str
    overlap: Overlap
    rules: Rules


class Ablated(msgspec.Struct, frozen=True, kw_only=True):
    """All ablations of a recipe on a dataset; what `trivet lab ablate --out` writes."""

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
    """The recipe itself and the recipe without each of its parts in turn."""
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


def legs_alone(config: str) -> dict[str, str]:
    """The recipe with one leg, for each that can search by itself; one that starts from others' hits cannot."""
    whole = parse_recipe(config)
    able = [leg.name for leg in legs() if leg.name in whole.legs and not leg.after_others]
    return {leg: str(msgspec.structs.replace(whole, legs=(leg,))) for leg in able} if len(whole.legs) > 1 else {}


def taking_part(bench: Bench, config: str) -> Recipe:
    """The recipe with those of its legs that can search here: without an embedder, those that need none."""
    recipe = parse_recipe(config)
    absent = left_out(bench.trivet.engine, recipe)
    return msgspec.structs.replace(recipe, legs=tuple(leg for leg in recipe.legs if leg not in absent))


def ablate(bench: Bench, config: str, progress: Progress | None = None) -> Ablated:
    """Measures the recipe, the recipe without each part, and each leg alone."""
    recipe = str(taking_part(bench, config))
    arms = {part: run_arm(bench, one, SWEEP_MEASURES, progress=progress) for part, one in ablations(recipe).items()}
    whole, *rest = arms.values()
    compared = [None, *against(whole.measured, [arm.measured for arm in rest])]
    alone = {leg: run_arm(bench, one, SWEEP_MEASURES, progress=progress) for leg, one in legs_alone(recipe).items()}
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
    return LegOverlap(leg=leg, overlap=found, rules=by_the_rules(found))
