"""How the graph's weight is chosen: on all corpora but one, and tested on that one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from trivet.lab.significance import holm

# A corpus may lose this much nDCG@10 at most.
TOLERATED = 0.005
HEADLINE = "nDCG@10"

# Differences by corpus, then by arm.
Sweep = Mapping[str, Mapping[str, Mapping[str, Any]]]
Barred = Callable[[Mapping[str, Any]], bool]


def harms(row: Mapping[str, Any]) -> bool:
    """Whether the interval lies wholly below what is tolerated: a loss larger than that has been shown."""
    return float(row[HEADLINE]["high"]) < -TOLERATED


def is_safe(row: Mapping[str, Any]) -> bool:
    """Whether the interval lies wholly above it: a loss larger than that has been ruled out."""
    return float(row[HEADLINE]["low"]) > -TOLERATED


def is_unsure(row: Mapping[str, Any]) -> bool:
    return not is_safe(row)


def chosen_on(sweep: Sweep, corpora: Sequence[str], arms: Iterable[str], barred: Barred = harms) -> str | None:
    """The arm with the largest mean gain among those that are barred by none of these corpora."""
    allowed = [arm for arm in arms if not any(barred(sweep[corpus][arm]) for corpus in corpora)]
    return max(allowed, key=lambda arm: mean_gain(sweep, corpora, arm)) if allowed else None


def mean_gain(sweep: Sweep, corpora: Sequence[str], arm: str) -> float:
    return fmean(sweep[corpus][arm][HEADLINE]["difference"] for corpus in corpora)


def leave_one_out(sweep: Sweep, arms: Sequence[str], barred: Barred = harms) -> dict[str, dict[str, Any]]:
    """For each corpus, what the others would choose, and what that does here."""
    folds: dict[str, dict[str, Any]] = {}
    for corpus in sweep:
        others = [other for other in sweep if other != corpus]
        arm = chosen_on(sweep, others, arms, barred)
        if arm is None:
            folds[corpus] = {"chosen": None}
            continue
        best = max(arms, key=lambda one: sweep[corpus][one][HEADLINE]["difference"])
        folds[corpus] = {
            "chosen": arm,
            "gain on the others": round(mean_gain(sweep, others, arm), 5),
            "here": sweep[corpus][arm],
            "harms here": harms(sweep[corpus][arm]),
            "best here": best,
            "best difference here": sweep[corpus][best][HEADLINE]["difference"],
        }
    return folds


def over_corpora(sweep: Sweep, arm: str, measures: Sequence[str]) -> dict[str, dict[str, float]]:
    """p of one arm on every corpus, corrected by Holm over the corpora."""
    corrected = {measure: holm([sweep[corpus][arm][measure]["p"] for corpus in sweep]) for measure in measures}
    return {
        corpus: {measure: round(corrected[measure][place], 5) for measure in measures}
        for place, corpus in enumerate(sweep)
    }


def verdict(row: Mapping[str, Any], corrected_p: float) -> str:
    """In a word what an arm does to a corpus, by its headline measure."""
    figures = row[HEADLINE]
    if harms(row):
        return "hurts"
    if corrected_p < 0.05:
        return "wins" if figures["difference"] > 0 else "loses a little"
    return "neutral" if is_safe(row) else "neutral, but a loss above 0.005 is not ruled out"
