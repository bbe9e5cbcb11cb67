"""The numbers behind the report's plots and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from trivet.lab.compare import CONFIDENCE, RESAMPLES
from trivet.lab.dataset_types import RELEVANT
from trivet.lab.grades import Grades
from trivet.lab.plots import Bar, Spot
from trivet.lab.resample import bootstrap_means, intervals
from trivet.lab.saved_runs import WrittenArm
from trivet.lab.sweep_file import Sweep

Scores = Mapping[str, tuple[list[float], list[float]]]


def bar(values: Iterable[float]) -> Bar:
    """A mean with its bootstrap interval."""
    column = np.array(list(values))[:, None]
    ((low, high),) = intervals(bootstrap_means(column, RESAMPLES, 0), CONFIDENCE)
    return Bar(float(column.mean()), low, high)


def spot(label: str, arm: WrittenArm, measure: str) -> Spot | None:
    """None for an arm without times."""
    p50, p95 = latency(arm, "p50"), latency(arm, "p95")
    if p50 is None or p95 is None:
        return None
    mean = bar(arm.measured.per_query[measure].values())
    return Spot(label, mean.value, mean.low, mean.high, p50, p95)


def latency(arm: WrittenArm, percentile: str) -> float | None:
    """Legs work side by side, so the slowest counts; then what is decided over their rankings."""
    times = arm.manifest.times_ms
    legs = [spread[percentile] for name, spread in times.items() if name.startswith("leg ")]
    if "decide" not in times or not legs:
        return None
    return max(legs) + times["decide"][percentile]


def by_stratum(arm: WrittenArm, measure: str) -> list[Bar]:
    values = arm.measured.per_query[measure]
    return [bar(values[query] for query in queries) for queries in arm.measured.strata.values()]


def leg_scores(arms: Sequence[WrittenArm], grades: Grades) -> Scores:
    """For each leg, the scores of relevant hits and of the others, from the first arm that has the leg."""
    found: dict[str, tuple[list[float], list[float]]] = {}
    for arm in arms:
        own: dict[str, tuple[list[float], list[float]]] = {}
        for line in arm.queries.values():
            judged = grades.get(line.query, {})
            for hit in line.top:
                for leg, trace in hit.legs.items():
                    if trace.rank is not None:
                        side = 0 if judged.get(hit.document, 0) >= RELEVANT else 1
                        own.setdefault(leg, ([], []))[side].append(trace.score)
        found = own | found
    return {leg: found[leg] for leg in sorted(found, reverse=True)}


def told_apart(relevant: Sequence[float], others: Sequence[float]) -> float | None:
    """The chance that a relevant hit scores above another hit, ties counting half; None if either is missing."""
    if not relevant or not others:
        return None
    ordered = np.sort(np.array(others))
    below = np.searchsorted(ordered, relevant, side="left")
    not_above = np.searchsorted(ordered, relevant, side="right")
    return float((below + not_above).mean() / 2 / len(ordered))


def curves(sweep: Sweep, measure: str) -> dict[str, dict[str, list[float]]]:
    """For each parameter that was varied, the measure of all points at each of its settings."""
    return {
        slot: {
            setting: [point.overall[measure] for point in sweep.points if point.values[slot] == setting]
            for setting in dict.fromkeys(settings)
        }
        for slot, settings in sweep.varied.items()
        if len(set(settings)) > 1
    }
