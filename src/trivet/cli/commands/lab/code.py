"""`trivet lab code`: code search measured on repositories with graded files, and against semble."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trivet.cli.command import command
from trivet.cli.session import Session

if TYPE_CHECKING:
    from trivet.lab.code.measure import CodeVerdict, Measurement
    from trivet.lab.code.search_runs import Scope


class CodeScope(StrEnum):
    root = "root"
    whole = "whole"


class OtherSearchEngine(StrEnum):
    semble = "semble"


@command(
    "lab code",
    "Measure code search on repositories with graded files, by recipe and against semble.",
    more="DIR is a folder of sets, NAME/{tree/,queries.jsonl,qrels.tsv,meta.json}, or one set. "
    "Each tree is indexed from scratch and every query is asked. --out gets run.trec (files, "
    "best first), measures.json and report.md. Look-ups that a program generated are not in "
    "the headline figures. A file of grade 0 or less is forbidden. The first --recipe is the "
    "baseline of the others. The exit status is 0, or with --gate or --forbid the sum of 1: "
    "a measure fell below the baseline by more than chance; 4: a forbidden file is in a "
    "query's first ten. Input that cannot be read exits with 2 and an error on standard "
    "error.",
    example="trivet lab code sets --scope whole --out runs/code\n"
    'trivet lab code sets --out runs/fusions --recipe default --recipe "rrf(k=60)"\n'
    "trivet lab code sets --out runs/beside --beside semble --semble semble-venv/bin/python\n"
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
    recipe: Annotated[
        list[str] | None,
        typer.Option(
            "--recipe",
            metavar="SPEC",
            help="A code search recipe, or `default`. Repeatable.",
            show_default=False,
        ),
    ] = None,
    repositories: Annotated[
        str,
        typer.Option(
            "--repositories", metavar="A,B,...", help="Only these sets.", show_default=False
        ),
    ] = "",
    beside: Annotated[
        OtherSearchEngine | None,
        typer.Option(
            "--beside", help="Also run another program on the same queries.", show_default=False
        ),
    ] = None,
    semble: Annotated[
        Path | None,
        typer.Option(
            "--semble",
            metavar="PYTHON",
            help="The Python of an environment with semble.",
            show_default=False,
        ),
    ] = None,
    gate: Annotated[
        Path | None,
        typer.Option(
            "--gate",
            metavar="BASELINE",
            help="The measures.json of the baseline.",
            show_default=False,
        ),
    ] = None,
    forbid: Annotated[
        bool, typer.Option("--forbid", help="Fail if a forbidden file is found.")
    ] = False,
) -> int:
    from trivet.cli.commands.lab.tables import code_lines

    chosen = list(dict.fromkeys(recipe or ["default"]))
    program = _program(beside, semble)
    names = [name.strip() for name in repositories.split(",") if name.strip()]
    measurement, verdict = _measured(
        folder,
        "root" if scope is CodeScope.root else "whole",
        chosen,
        names,
        out,
        program,
        gate,
        forbid,
    )
    report = measurement.report
    session.show({"report": report, "verdict": verdict}, lambda: code_lines(report, verdict))
    return verdict.code if verdict else 0


def _program(beside: OtherSearchEngine | None, semble: Path | None) -> Path | None:
    from trivet.errors import InvalidInput
    from trivet.lab.code.search_runs import INSTALL

    if beside and not semble:
        raise InvalidInput(
            "--beside semble needs --semble PYTHON, the Python of an environment made by: "
            f"{INSTALL}"
        )
    return semble


def _measured(
    folder: Path,
    scope: Scope,
    recipes: list[str],
    names: list[str],
    out: Path,
    semble: Path | None,
    gate: Path | None,
    forbid: bool,
) -> tuple[Measurement, CodeVerdict | None]:
    from trivet.cli.commands.lab.runs import make_folder
    from trivet.cli.terminal import DelayedProgress
    from trivet.lab.code.measure import check_same_data, judge, measure_code, read_baseline
    from trivet.lab.code.pages import write_code
    from trivet.lab.code.search_runs import fingerprint, read_sets
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
    return measurement, judge(
        measurement, baseline, forbid or baseline is not None
    ) if baseline or forbid else None
