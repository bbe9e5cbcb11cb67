"""Writes a code-search measurement: TREC runs, measures.json and a report page."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec

from trivet.lab.code.figures import HEADLINE, MEASURES, Difference, Mean
from trivet.lab.code.measure import SEMBLE, CodeArm, CodeComparison, CodeReport, Measurement, Spread
from trivet.lab.measure.comparison import interval_text
from trivet.lab.measure.run import slug
from trivet.lab.report.page import Page, Paragraph, Section, Table, as_markdown

TAG = "trivet"
# Up to this many arms, tables include the intervals.
WITH_INTERVALS = 3
SCOPES = {"root": "the sub-folders that meta.json names", "whole": "whole trees"}


def write_code(measurement: Measurement, out: Path) -> list[Path]:
    """Write the files; run.trec is the first recipe's."""
    files = {out / "run.trec": _trec(measurement, measurement.report.arms[0].name, TAG)}
    for number, arm in enumerate(measurement.report.arms[1:], 2):
        name = SEMBLE if arm.name == SEMBLE else slug(number, arm.name)
        files[out / f"{name}.trec"] = _trec(
            measurement, arm.name, SEMBLE if arm.name == SEMBLE else TAG
        )
    report = msgspec.to_builtins(measurement.report)
    files[out / "measures.json"] = json.dumps(report, indent=1, ensure_ascii=False) + "\n"
    files[out / "report.md"] = as_markdown(page(measurement.report), "")
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return list(files)


def page(report: CodeReport) -> Page:
    queries = sum(report.sets.values())
    return Page(
        title="Code search, measured by file",
        opening=f"{queries:,} queries about {len(report.sets)} repositories, "
        f"indexed from {SCOPES[report.scope]}. {report.meaning}",
        sections=[
            _arms(report),
            *quality(report),
            *_differences(report),
            cost(report),
            *_notes(report),
            by_set(report),
        ],
    )


def labels(report: CodeReport) -> list[str]:
    several = sum(arm.name != SEMBLE for arm in report.arms) > 1
    ours = [str(number) if several else TAG for number in range(1, len(report.arms) + 1)]
    return [
        SEMBLE if arm.name == SEMBLE else name for arm, name in zip(report.arms, ours, strict=True)
    ]


def quality(report: CodeReport) -> list[Section]:
    return [
        Section(f"{name}, over queries and as the mean over repositories", [table(report, name)])
        for name in MEASURES
    ]


def table(report: CodeReport, measure: str) -> Table:
    """Return a table; many arms get only means, to fit the page."""
    width = 3 if len(report.arms) <= WITH_INTERVALS else 1
    header = ["", "queries"]
    for label in labels(report):
        header += (label, "95 % interval", "by set")[:width]
    rows = []
    for group, first in report.arms[0].groups.items():
        row = [group, str(first.queries)]
        for arm in report.arms:
            row += _cells(arm.groups[group].measures[measure])[:width]
        rows.append(row)
    return Table(header, rows)


def difference_rows(versus: CodeComparison, measure: str) -> list[list[str]]:
    return [[group, *_difference(found[measure])] for group, found in versus.groups.items()]


DIFFERENCE = (
    "",
    "queries",
    "difference",
    "95 % interval",
    "wins",
    "losses",
    "ties",
    "by set",
    "its interval",
)
COST = (
    "",
    "files",
    "MB",
    "chunks",
    "index, processor s",
    "s / MB",
    "query p50 ms",
    "p95 ms",
    "processor p50",
    "p95",
)


def cost_rows(report: CodeReport) -> list[list[str]]:
    """Return rows for the first recipe and semble."""
    return [
        _cost(label, arm, arm.query_ms, arm.query_processor_ms)
        for label, arm in zip(labels(report), report.arms, strict=True)
        if arm.query_ms and arm.query_processor_ms
    ]


def cost(report: CodeReport) -> Section:
    text = (
        "Index: the sum over the repositories, each built from scratch. Query: ten chunks, after "
        "one query as warm-up. A shared machine inflates wall-clock times: compare them within "
        "this run, or compare processor times."
    )
    return Section("Time", [Paragraph(text), Table(COST, cost_rows(report))])


def semble_note(report: CodeReport) -> str:
    found = report.manifest.get(SEMBLE)
    if not found:
        return ""
    model = (
        "with its model"
        if found["model"]
        else "without its model, which could not be loaded: on words alone"
    )
    return (
        f"semble {found['version']} with its grammars, {model}. Each query requests fifty chunks."
    )


def forbidden_note(arm: CodeArm) -> str:
    barred = arm.forbidden
    if not barred.queries:
        return "No query has a forbidden file."
    return (
        f"{barred.broken} of the {barred.queries} queries with a forbidden file "
        "have one among their first ten."
    )


def _trec(measurement: Measurement, name: str, tag: str) -> str:
    rows = (
        f"{query} Q0 {path} {rank} {score:.6f} {tag}\n"
        for query, files in measurement.runs[name].items()
        for rank, (path, score) in enumerate(files, 1)
    )
    return "".join(rows)


def _arms(report: CodeReport) -> Section:
    rows = [
        (label, arm.name, arm.recipe)
        for label, arm in zip(labels(report), report.arms, strict=True)
    ]
    blocks = [Table(("", "name", "whole recipe"), rows, code=frozenset({1, 2}))]
    note = semble_note(report)
    return Section("What was measured", [*blocks, *([Paragraph(note)] if note else [])])


def _differences(report: CodeReport) -> list[Section]:
    names = dict(zip((arm.name for arm in report.arms), labels(report), strict=True))
    return [
        Section(
            f"{measure}: {names[one.candidate]} minus {names[one.base]}",
            [Table(DIFFERENCE, difference_rows(one, measure))],
        )
        for one in report.differences
        for measure in MEASURES
    ]


def _notes(report: CodeReport) -> list[Section]:
    arm = report.arms[0]
    blocks = [Paragraph(forbidden_note(arm))]
    blocks += [Paragraph(f"- {line}") for line in arm.forbidden.found]
    if report.absent:
        blocks.append(Paragraph(f"Judged files that no tree contains: {', '.join(report.absent)}."))
    facts = [(key, str(value)) for key, value in report.manifest.items()]
    return [
        Section("Forbidden files", blocks),
        Section("How it was made", [Table(("", ""), facts)]),
    ]


def by_set(report: CodeReport) -> Section:
    arms = [
        (label, arm)
        for label, arm in zip(labels(report), report.arms, strict=True)
        if arm is report.arms[0] or arm.name == SEMBLE
    ]
    header = ["", "queries", *(f"{label} {name}" for label, _ in arms for name in MEASURES)]
    rows = []
    for name in report.sets:
        found = [arm.by_set[name].get(HEADLINE) for _, arm in arms]
        count = str(int(found[0]["queries"])) if found[0] else "0"
        rows.append(
            [
                name,
                count,
                *(f"{one[measure]:.4f}" if one else "–" for one in found for measure in MEASURES),
            ]
        )
    return Section(f"Each repository, {HEADLINE}", [Table(header, rows)])


def _cells(mean: Mean) -> list[str]:
    return [f"{mean.mean:.4f}", f"{mean.low:.3f} to {mean.high:.3f}", f"{mean.by_set:.4f}"]


def _difference(one: Difference) -> list[str]:
    counts = [str(count) for count in (one.wins, one.losses, one.ties)]
    over_queries = [
        str(one.queries),
        f"{one.difference:+.4f}",
        interval_text(one.low, one.high),
    ]
    return [
        *over_queries,
        *counts,
        f"{one.by_set:+.4f}",
        interval_text(one.by_set_low, one.by_set_high),
    ]


def _cost(label: str, arm: CodeArm, wall: Spread, processor: Spread) -> list[str]:
    index = arm.index
    each = index.processor_s / index.megabytes if index.megabytes else 0.0
    sizes = [
        str(index.files),
        f"{index.megabytes:.1f}",
        str(index.chunks),
        f"{index.processor_s:.1f}",
        f"{each:.2f}",
    ]
    return [
        label,
        *sizes,
        *(f"{took:.1f}" for took in (wall.p50, wall.p95, processor.p50, processor.p95)),
    ]
