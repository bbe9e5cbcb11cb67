"""`trivet lab code`: code search measured on repositories with graded files, and against semble."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trivet.cli.command import command
from trivet.cli.session import Session
from trivet.cli.terminal import DelayedProgress, Line, line
from trivet.errors import InvalidInput

if TYPE_CHECKING:
    from trivet.lab.code.measure import CodeReport, CodeVerdict, Measurement
    from trivet.lab.code.sets import Scope


class CodeScope(StrEnum):
    root = "root"
    whole = "whole"


class OtherSearchEngine(StrEnum):
    semble = "semble"


RecipeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--recipe",
        metavar="SPEC",
        help="A code search recipe, or `default`. Repeatable.",
        show_default=False,
    ),
]
RepositoriesOption = Annotated[
    str,
    typer.Option("--repositories", metavar="A,B,...", help="Only these sets.", show_default=False),
]
BesideOption = Annotated[
    OtherSearchEngine | None,
    typer.Option(
        "--beside", help="Also run another program on the same queries.", show_default=False
    ),
]
SembleOption = Annotated[
    Path | None,
    typer.Option(
        "--semble",
        metavar="PYTHON",
        help="The Python of an environment with semble.",
        show_default=False,
    ),
]
GateOption = Annotated[
    Path | None,
    typer.Option(
        "--gate",
        metavar="BASELINE",
        help="The measures.json of the baseline.",
        show_default=False,
    ),
]


@command(
    "lab code",
    "Measure code search on repositories with graded files, by recipe and against semble.",
    more="A set is a folder with tree/, queries.jsonl, qrels.tsv and meta.json. --out gets "
    "run.trec, measures.json and report.md. The first --recipe is the baseline of the others."
    "\n\n\b\n"
    "Exit status:\n"
    "  0  everything passed\n"
    "  1  with --gate: a measure fell below the baseline by more than chance\n"
    "  2  input cannot be read\n"
    "  4  with --gate or --forbid: a file of grade 0 or less is in a query's first ten\n"
    "  5  both 1 and 4",
    example='trivet lab code sets --out runs/fusions --recipe default --recipe "rrf(k=60)"\n'
    "trivet lab code sets --out runs/new --gate runs/code/measures.json",
    uses_store=False,
)
def code(
    session: Session,
    folder: Annotated[
        Path,
        typer.Argument(metavar="DIR", help="A folder of sets, or one set.", show_default=False),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="OUT", help="The folder to write.", show_default=False)
    ],
    scope: Annotated[
        CodeScope,
        typer.Option(
            "--scope", help="Search the sub-folder that meta.json calls `root`, or the whole tree."
        ),
    ] = CodeScope.whole,
    recipe: RecipeOption = None,
    repositories: RepositoriesOption = "",
    beside: BesideOption = None,
    semble: SembleOption = None,
    gate: GateOption = None,
    forbid: Annotated[
        bool, typer.Option("--forbid", help="Fail if a forbidden file is found.")
    ] = False,
) -> int:
    chosen = list(dict.fromkeys(recipe or ["default"]))
    _check_other_engine(beside, semble)
    names = [name.strip() for name in repositories.split(",") if name.strip()]
    measurement, verdict = _measured(
        folder,
        scope="root" if scope is CodeScope.root else "whole",
        recipes=chosen,
        names=names,
        out=out,
        semble=semble,
        gate=gate,
        forbid=forbid,
    )
    report = measurement.report
    session.show({"report": report, "verdict": verdict}, lambda: _lines(report, verdict))
    return verdict.code if verdict else 0


def _check_other_engine(beside: OtherSearchEngine | None, semble: Path | None) -> None:
    """Check that semble can be started; `--semble` alone also runs it."""
    from trivet.lab.code.search_runs import INSTALL

    if beside and not semble:
        raise InvalidInput(
            "--beside semble needs --semble PYTHON, the Python of an environment made by: "
            f"{INSTALL}"
        )


def _measured(
    folder: Path,
    *,
    scope: Scope,
    recipes: list[str],
    names: list[str],
    out: Path,
    semble: Path | None,
    gate: Path | None,
    forbid: bool,
) -> tuple[Measurement, CodeVerdict | None]:
    from trivet.cli.commands.lab.runs import make_folder
    from trivet.lab.code.measure import check_same_data, judge, measure_code, read_baseline
    from trivet.lab.code.pages import write_code
    from trivet.lab.code.sets import fingerprint, read_sets
    from trivet.lab.optional_packages import MEASURING, need

    need(*MEASURING)
    # Refuse bad input before the long run.
    sets = read_sets(folder, names)
    baseline = read_baseline(gate) if gate else None
    if baseline and gate:
        check_same_data(fingerprint(sets, scope), baseline, gate)
    make_folder(out)
    with DelayedProgress("repositories", lambda _: len(sets)) as progress:
        measurement = measure_code(sets, scope, recipes, semble, progress)
    write_code(measurement, out)
    judged = forbid or baseline is not None
    return measurement, judge(measurement, baseline, judged) if judged else None


def _lines(report: CodeReport, verdict: CodeVerdict | None) -> Iterator[Line]:
    from trivet.cli.commands.lab.tables import table
    from trivet.lab.code import pages
    from trivet.lab.code.figures import MEASURES

    names = pages.labels(report)
    for name, arm in zip(names, report.arms, strict=True):
        # Only semble's label is its name; a recipe's label is a number or tag.
        yield line(
            (f"{name} ", "bold"), pages.semble_note(report) if name == arm.name else arm.name
        )
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
        yield line(
            (
                f"{len(report.absent)} judged files are in no tree, such as {report.absent[0]}.",
                "yellow",
            )
        )
    if verdict is not None:
        yield line("")
        yield from _verdict_lines(verdict)


def _verdict_lines(verdict: CodeVerdict) -> Iterator[Line]:
    yield line(
        ("passed", "bold green") if verdict.passed else (f"failed ({verdict.code})", "bold red")
    )
    for reason in verdict.reasons:
        yield line(reason, indent=2)
