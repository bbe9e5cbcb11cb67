"""What people see of a measurement of code search."""

from __future__ import annotations

from collections.abc import Iterator

from trivet.cli.output import Line, line
from trivet.cli.views.lab import table
from trivet.lab.code import pages
from trivet.lab.code.figures import MEASURES
from trivet.lab.code.gate import CodeVerdict
from trivet.lab.code.measure import CodeReport


def lines(report: CodeReport, verdict: CodeVerdict | None) -> Iterator[Line]:
    names = pages.labels(report)
    for name, arm in zip(names, report.arms, strict=True):
        yield line((f"{name} ", "bold"), pages.semble_note(report) if name == arm.name else arm.name)
    for measure in MEASURES:
        yield line("")
        shown = pages.table(report, measure)
        yield from table((measure, *shown.header[1:]), shown.rows, strong=0)
    for versus in report.differences:
        of = {arm.name: name for name, arm in zip(names, report.arms, strict=True)}
        yield line("")
        yield line((f"{MEASURES[0]}: {of[versus.candidate]} minus {of[versus.base]}", "bold"))
        yield from table(pages.DIFFERENCE, pages.difference_rows(versus, MEASURES[0]), strong=0)
    yield line("")
    yield from table(pages.COST, pages.cost_rows(report))
    yield line(pages.forbidden_note(report.arms[0]))
    if report.absent:
        yield line((f"{len(report.absent)} judged files are in no tree, such as {report.absent[0]}.", "yellow"))
    if verdict is not None:
        yield line("")
        yield line(("passed", "bold green") if verdict.passed else (f"failed ({verdict.code})", "bold red"))
        for reason in verdict.reasons:
            yield line(reason, indent=2)
