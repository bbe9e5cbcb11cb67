"""Measure code search by fusion and against semble; write docs/results/code.json and code.md.

python benchmarks/code_search.py SETS --semble PYTHON

SETS is what `trivet lab code` takes. Every fusion searches whole trees with the same legs: those of
the default recipe with its weights, and words and vectors alone. The default searches the
sub-folders. Takes half an hour.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from manifest import manifest
from trivet.code.recipe import DEFAULT
from trivet.lab.code.figures import GENERATED_STRATA, HEADLINE, MEASURES, OWN, Difference
from trivet.lab.code.measure import SEMBLE, CodeArm, CodeComparison, CodeReport, measure_code
from trivet.lab.code.pages import write_code
from trivet.lab.code.sets import CodeSet, Scope, read_sets
from trivet.lab.report.page import Page, Paragraph, Section, Table, as_markdown
from trivet.search.fuse import Fusion, Options

RESULTS = Path("docs/results")
COMMAND = "python benchmarks/code_search.py SETS --semble PYTHON"
# What a later run is held against stays with the runs; a kept result needs the means alone.
NOT_KEPT = ("per_query", "strata")
BY_SET = ("by_set", "index_by_set", "query_ms_by_set")
PAIR = ("lexical", "dense")
NDCG, RECALL = MEASURES
SCOPES = {"root": "sub-folders", "whole": "whole trees"}
# Where the fusions differ most.
FUSION_GROUPS = (HEADLINE, "issue")


def recipes() -> dict[str, str]:
    """By a short name. The first is the default; the weights of the others are the default's."""
    weights = DEFAULT.fusion.weights
    others = {leg: 0.0 for leg in weights if leg not in PAIR}
    return {
        "default": "default",
        **{name: str(fusion) for name, fusion in _others(weights).items()},
        f"{DEFAULT.fusion.method}, two legs": str(Fusion(DEFAULT.fusion.method, _with(others))),
        **{
            f"{name}, two legs": str(fusion)
            for name, fusion in _others({**weights, **others}).items()
        },
    }


def _with(weights: Mapping[str, float]) -> Options:
    return Options({**DEFAULT.fusion.options, **weights})


def _others(weights: Mapping[str, float]) -> dict[str, Fusion]:
    pair = sum(weights.get(leg, 1.0) for leg in PAIR)
    blend = {**weights, "dense": 0.75 * pair, "lexical": 0.25 * pair}
    return {
        "dbsf": Fusion("dbsf", Options(weights)),
        "rrf(k=60)": Fusion("rrf", Options({"k": 60.0, **weights})),
        "saturation": Fusion("saturation", Options({"half.lexical": 4.0, **blend})),
    }


def page(
    whole: CodeReport, root: CodeReport, names: Mapping[str, str], made: Mapping[str, Any]
) -> Page:
    return Page(
        title="Code search",
        opening=_opening(whole, root, made),
        sections=[
            Section(
                "Against semble",
                [
                    _notes(whole, root),
                    _semble(root, whole),
                    Paragraph(COST_NOTE.strip()),
                    _costs(root, whole),
                ],
            ),
            Section("Which fusion", [Paragraph(FUSIONS.strip()), _fusions(whole, names)]),
        ],
    )


OPENING = """
**Question.** How well does `trivet code` find the files that answer a question, and which fusion is
best?

**Answer.** On whole trees, {ndcg} is {ours:.3f}, semble's {theirs:.3f}:
{difference}. {fusions}

**Method.** `{command}`. {queries:,} queries about {sets}
repositories, scored by file. *{headline}* leaves out the look-ups made by a program (*symbol-auto*,
*symbol-qualified*, *symbol-spoken*). *{own}* are the strata of semble's annotations (*arch*,
*nl*, *symbol*). semble {version} runs {model}.
{machine}, {date}, commit {commit}. [code.json](code.json) has every
interval, repository, recipe and version. Ranking was tuned on 16 of the repositories.
"""
COST_NOTE = """
Processor time to index all repositories from nothing, and per query for ten chunks:
"""
FUSIONS = """
Whole trees. The fusions use the same legs and, where they have any, the default's weights; *two
legs* means words and vectors alone. *saturation* is `.75 vector + .25 lexical/(lexical+4)`, times
.72 without a lexical score. Cells: value, difference from the default.
"""


def _opening(whole: CodeReport, root: CodeReport, made: Mapping[str, Any]) -> str:
    arms = {
        arm.name: arm.groups[HEADLINE].measures[NDCG].mean
        for arm in (whole.arms[0], _arm(whole, SEMBLE))
    }
    ours, theirs = arms.values()
    better = [
        one.candidate for one in _fusions_compared(whole) if one.groups[HEADLINE][NDCG].low > 0
    ]
    semble = whole.manifest[SEMBLE]
    return OPENING.strip().format(
        ndcg=f"{NDCG} of the {HEADLINE} queries",
        ours=ours,
        theirs=theirs,
        difference=_difference(_against_semble(whole)[HEADLINE][NDCG]),
        fusions=f"Better: {', '.join(better)}."
        if better
        else "No other fusion of the same legs is better.",
        version=semble["version"],
        model="with its model"
        if semble["model"]
        else "on words alone; its model could not be loaded",
        command=made["command"],
        queries=sum(whole.sets.values()),
        sets=len(whole.sets),
        headline=HEADLINE,
        own=OWN,
        machine=made["machine"],
        date=made["date"][:10],
        commit=made["commit"][:12],
    )


def _notes(whole: CodeReport, root: CodeReport) -> Paragraph:
    """Recall, and where semble is better."""
    ours, theirs = (arm.by_set for arm in (whole.arms[0], _arm(whole, SEMBLE)))
    behind = [
        name for name in whole.sets if ours[name][HEADLINE][NDCG] < theirs[name][HEADLINE][NDCG]
    ]
    recalls = [
        [
            f"{_arm(report, name).groups[HEADLINE].measures[RECALL].mean:.3f}"
            for name in (report.arms[0].name, SEMBLE)
        ]
        for report in (root, whole)
    ]
    (ours_root, theirs_root), (ours_whole, theirs_whole) = recalls
    return Paragraph(
        f"Headline {RECALL}, Trivet and semble: sub-folders {ours_root} and {theirs_root}, "
        f"whole trees {ours_whole} and {theirs_whole}.\n"
        f"On whole trees, semble is better on {', '.join(behind)}."
    )


def _semble(*reports: CodeReport) -> Table:
    header = [NDCG, "queries"]
    for report in reports:
        header += (f"{SCOPES[report.scope]}: Trivet", "semble", "difference")
    rows = []
    for group, first in reports[0].arms[0].groups.items():
        if group in GENERATED_STRATA:
            continue
        row = [group, str(first.queries)]
        for report in reports:
            means = [
                arm.groups[group].measures[NDCG].mean
                for arm in (report.arms[0], _arm(report, SEMBLE))
            ]
            row += [
                *(f"{mean:.3f}" for mean in means),
                _difference(_against_semble(report)[group][NDCG]),
            ]
        rows.append(row)
    return Table(header, rows)


def _costs(*reports: CodeReport) -> Table:
    header = ("processor time", "index, s per MB", "query p50, ms", "query p95, ms")
    rows = []
    for report in reports:
        for label, arm in (("Trivet", report.arms[0]), (SEMBLE, _arm(report, SEMBLE))):
            query = arm.query_processor_ms
            times = [f"{query.p50:.1f}", f"{query.p95:.1f}"] if query else ["", ""]
            each = arm.index.processor_s / arm.index.megabytes
            rows.append([f"{SCOPES[report.scope]}, {label}", f"{each:.2f}", *times])
    return Table(header, rows)


def _fusions(report: CodeReport, names: Mapping[str, str]) -> Table:
    against = {one.candidate: one.groups for one in _fusions_compared(report)}
    rows = []
    for name, recipe in names.items():
        arm = next(arm for arm in report.arms if arm.name == recipe)
        row = [name]
        for group in FUSION_GROUPS:
            versus = f", {_difference(against[recipe][group][NDCG])}" if recipe in against else ""
            row.append(f"{arm.groups[group].measures[NDCG].mean:.3f}{versus}")
        rows.append(row)
    return Table((NDCG, *FUSION_GROUPS), rows)


def _arm(report: CodeReport, name: str) -> CodeArm:
    return next(arm for arm in report.arms if arm.name == name)


def _against_semble(report: CodeReport) -> Mapping[str, Mapping[str, Difference]]:
    return next(one.groups for one in report.differences if one.base == SEMBLE)


def _fusions_compared(report: CodeReport) -> list[CodeComparison]:
    return [one for one in report.differences if one.base != SEMBLE]


def _difference(one: Difference) -> str:
    return f"{one.difference:+.3f} ({one.low:+.3f} to {one.high:+.3f})"


def kept(report: CodeReport) -> dict[str, Any]:
    """Each set is kept of the default and of semble alone; four digits are enough."""
    first = report.arms[0].name
    value = {
        key: found for key, found in msgspec.to_builtins(report).items() if key not in NOT_KEPT
    }
    value["arms"] = [
        {
            key: found
            for key, found in arm.items()
            if key not in BY_SET or arm["name"] in (first, SEMBLE)
        }
        for arm in value["arms"]
    ]
    rounded: dict[str, Any] = _rounded(value)
    return rounded


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(found) for key, found in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(found) for found in value]
    return round(value, 4) if isinstance(value, float) else value


def measured(
    sets: Sequence[CodeSet], scope: Scope, asked: Sequence[str], given: argparse.Namespace
) -> CodeReport:
    measurement = measure_code(
        sets, scope, asked, given.semble, lambda _: print(end=".", flush=True)
    )
    if given.runs:
        (given.runs / scope).mkdir(parents=True, exist_ok=True)
        write_code(measurement, given.runs / scope)
    return measurement.report


def earlier(file: Path) -> CodeReport:
    return msgspec.json.decode(file.read_bytes(), type=CodeReport)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sets", type=Path)
    parser.add_argument("--semble", type=Path)
    parser.add_argument("--repositories", default="")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--runs", type=Path, help="keep the runs and measures here as well")
    parser.add_argument(
        "--root", type=Path, help="measures.json of the sub-folders, in place of measuring them"
    )
    given = parser.parse_args()
    made, names = {**manifest(), "command": COMMAND}, recipes()
    sets = read_sets(given.sets, [name for name in given.repositories.split(",") if name])
    root = measured(sets, "root", ["default"], given) if given.root is None else earlier(given.root)
    whole = measured(sets, "whole", list(names.values()), given)
    value = {"manifest": made, "recipes": names, "root": kept(root), "whole": kept(whole)}
    (given.out / "code.json").write_text(
        json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )
    (given.out / "code.md").write_text(
        as_markdown(page(whole, root, names, made), ""), encoding="utf-8"
    )


if __name__ == "__main__":
    main()
