"""Measures recipes and semble on code-search sets, and judges them by an earlier run."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from trivet.code.recipe import parse_code_recipe
from trivet.errors import InvalidInput
from trivet.lab.code import figures
from trivet.lab.code.figures import GROUPS, MEASURES, Difference, Forbidden, Group
from trivet.lab.code.search_runs import (
    IndexCost,
    Ranked,
    SearchRun,
    Semble,
    SetAnswers,
    Version,
    ask_trivet,
)
from trivet.lab.code.sets import CodeSet, Scope, fingerprint
from trivet.lab.datasets.read_files import content
from trivet.lab.measure.comparison import ALPHA, Comparison, compare
from trivet.lab.measure.measures import Measured, means
from trivet.lab.measure.run import environment

SEMBLE = "semble"


class Spread(msgspec.Struct, frozen=True):
    p50: float
    p95: float


class CodeArm(msgspec.Struct, frozen=True, kw_only=True):
    """One way to search; recipes share `index`, summed over sets, and only the first is timed."""

    name: str
    recipe: str
    groups: Mapping[str, Group]
    by_set: Mapping[str, Mapping[str, Mapping[str, float]]]
    index: IndexCost
    index_by_set: Mapping[str, IndexCost]
    query_ms: Spread | None
    query_processor_ms: Spread | None
    query_ms_by_set: Mapping[str, Spread | None]
    forbidden: Forbidden


class CodeComparison(msgspec.Struct, frozen=True, kw_only=True):
    base: str
    candidate: str
    groups: Mapping[str, Mapping[str, Difference]]


class CodeReport(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `measures.json`; the first arm is compared with all others.

    `per_query` is the baseline of later runs.
    """

    scope: Scope
    sha256: str
    sets: Mapping[str, int]
    meaning: str
    arms: tuple[CodeArm, ...]
    differences: tuple[CodeComparison, ...]
    absent: tuple[str, ...]
    per_query: Mapping[str, Mapping[str, float]]
    strata: Mapping[str, Sequence[str]]
    manifest: Mapping[str, Any]


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    report: CodeReport
    runs: Mapping[str, Mapping[str, Ranked]]
    values: Measured


def measure_code(
    sets: Sequence[CodeSet],
    scope: Scope,
    recipes: Sequence[str],
    semble: Path | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Measurement:
    """Measure set by set, first Trivet and then semble."""
    for recipe in recipes:
        parse_code_recipe(recipe)  # report a misspelled recipe before the long work
    load = os.getloadavg()[0]
    ours: dict[str, SetAnswers] = {}
    theirs: dict[str, SetAnswers] = {}
    with Semble(semble) if semble else nullcontext() as semble_process:
        for one in sets:
            ours[one.name] = ask_trivet(one, scope, recipes)
            if semble_process:
                theirs[one.name] = semble_process.ask(one, scope)
            progress(1)
        version = semble_process.version if semble_process else None
    loads = {
        "load_before": round(load, 2),
        "load_after": round(os.getloadavg()[0], 2),
        "cores": os.cpu_count(),
    }
    return _measurement(sets, scope, recipes, ours, theirs, version, loads)


def _measurement(
    sets: Sequence[CodeSet],
    scope: Scope,
    recipes: Sequence[str],
    ours: Mapping[str, SetAnswers],
    theirs: Mapping[str, SetAnswers],
    version: Version | None,
    loads: Mapping[str, Any],
) -> Measurement:
    found = {recipe: (ours, place) for place, recipe in enumerate(recipes)}
    if version:
        found[SEMBLE] = (theirs, 0)
    of = figures.sets_of(sets)
    runs = {name: _joined(answers, place) for name, (answers, place) in found.items()}
    values = {name: figures.measured(sets, run) for name, run in runs.items()}
    arms = [
        _arm(name, answers, place, sets, runs[name], values[name])
        for name, (answers, place) in found.items()
    ]
    first = recipes[0]
    pairs = [(first, other) for other in recipes[1:]] + ([(SEMBLE, first)] if version else [])
    compared = [
        CodeComparison(
            base=base, candidate=name, groups=figures.differences(values[base], values[name], of)
        )
        for base, name in pairs
    ]
    report = CodeReport(
        scope=scope,
        sha256=fingerprint(sets, scope),
        sets={one.name: len(one.queries) for one in sets},
        meaning=figures.MEANING,
        arms=tuple(arms),
        differences=tuple(compared),
        absent=tuple(f"{one.name}: {path}" for one in sets for path in _absent(one)),
        per_query={
            name: {query: round(value, 6) for query, value in by_query.items()}
            for name, by_query in values[first].per_query.items()
        },
        strata=values[first].strata,
        manifest={**environment(), **loads, SEMBLE: version and msgspec.to_builtins(version)},
    )
    return Measurement(report=report, runs=runs, values=values[first])


def _arm(
    name: str,
    answers: Mapping[str, SetAnswers],
    place: int,
    sets: Sequence[CodeSet],
    run: figures.Run,
    values: Measured,
) -> CodeArm:
    of = figures.sets_of(sets)
    asked: dict[str, SearchRun] = {one.name: answers[one.name].asked[place] for one in sets}
    return CodeArm(
        name=name,
        recipe="" if name == SEMBLE else str(parse_code_recipe(name)),
        groups=figures.group_figures(values, of),
        by_set=figures.set_figures(values, of),
        index=_sum([one.indexed for one in answers.values()]),
        index_by_set={set_name: one.indexed for set_name, one in answers.items()},
        query_ms=_spread([took for one in asked.values() for took in one.wall_ms]),
        query_processor_ms=_spread([took for one in asked.values() for took in one.processor_ms]),
        query_ms_by_set={set_name: _spread(one.wall_ms) for set_name, one in asked.items()},
        forbidden=figures.forbidden(sets, run),
    )


def _joined(answers: Mapping[str, SetAnswers], place: int) -> dict[str, Ranked]:
    return {
        query: files for one in answers.values() for query, files in one.asked[place].run.items()
    }


def _sum(parts: Sequence[IndexCost]) -> IndexCost:
    return IndexCost(
        **{
            field: round(sum(getattr(one, field) for one in parts), 3)
            for field in IndexCost.__struct_fields__
        }
    )


def _spread(values: Sequence[float]) -> Spread | None:
    if not values:
        return None
    p50, p95 = np.percentile(values, (50, 95))
    return Spread(round(float(p50), 2), round(float(p95), 2))


def _absent(one: CodeSet) -> list[str]:
    judged = sorted({path for grades in one.grades.values() for path in grades})
    return [path for path in judged if not (one.tree / path).is_file()]


# As in the gate of recall, 4 means that a single case failed.
MEASURE_FELL, FORBIDDEN_FOUND = 1, 4


class CodeVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict; `code` adds 1 (a measure fell) and 4 (a forbidden file was found)."""

    code: int
    reasons: tuple[str, ...]

    @property
    def passed(self) -> bool:
        return self.code == 0


class _Baseline(msgspec.Struct, frozen=True):
    scope: str
    sha256: str
    per_query: dict[str, dict[str, float]]
    strata: dict[str, list[str]]


def read_baseline(path: Path) -> _Baseline:
    try:
        return msgspec.json.decode(content(path), type=_Baseline)
    except (msgspec.DecodeError, msgspec.ValidationError, UnicodeDecodeError) as error:
        raise InvalidInput(
            f"{path}: {error}. Give the measures.json that `trivet lab code` wrote."
        ) from None


def judge(measurement: Measurement, baseline: _Baseline | None, forbid: bool) -> CodeVerdict:
    """Judge the first recipe; without a baseline only forbidden files can fail."""
    fallen = _fallen(measurement, baseline) if baseline else []
    found = measurement.report.arms[0].forbidden.found if forbid else ()
    code = (MEASURE_FELL if fallen else 0) | (FORBIDDEN_FOUND if found else 0)
    barred = (
        [f"{len(found)} forbidden files are among the first ten: {', '.join(found[:10])}"]
        if found
        else []
    )
    return CodeVerdict(code=code, reasons=(*fallen, *barred))


def check_same_data(report_sha256: str, baseline: _Baseline, path: Path) -> None:
    if report_sha256 != baseline.sha256:
        raise InvalidInput(
            f"{path} was measured on other queries, grades or another scope ({baseline.scope}). "
            "Only runs over the same data can be compared: create the baseline again."
        )


def _fallen(measurement: Measurement, baseline: _Baseline) -> list[str]:
    """Judge groups by interval; the many strata also need Holm's correction."""
    base = Measured(
        per_query=baseline.per_query,
        overall={},
        by_stratum={name: means(baseline.per_query, ids) for name, ids in baseline.strata.items()},
        strata={name: tuple(ids) for name, ids in baseline.strata.items()},
    )
    compared = compare(base, measurement.values, MEASURES).by_stratum
    return [
        f"{name} of {group} fell from {one.base:.4f} to {one.candidate:.4f} "
        f"({one.low:+.4f} to {one.high:+.4f})"
        for group, found in compared.items()
        for name, one in found.items()
        if _fell(group, one)
    ]


def _fell(group: str, one: Comparison) -> bool:
    return one.high < 0 and (group in GROUPS or one.corrected_p < ALPHA)
