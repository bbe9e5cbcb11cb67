"""`trivet lab countings`: one run by everybody's way to count."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trivet.cli.command import command
from trivet.cli.session import Session


@command(
    "lab countings",
    "Count what was measured in the ways in which others report: by turn or session, any, a share or all of it.",
    more="FOLDER is an arm that `trivet lab run` has written, or holds some. Found is the memory that holds evidence, "
    "or any memory of its session: a document named SESSION:PLACE belongs to SESSION, as in locomo and longmemeval. "
    "Questions that have no answer (adversarial, abstention) are counted with the others and left out. "
    "docs/results/countings.md says who counts how, and what none of these tell.",
    example="trivet lab countings runs --out countings.json",
    uses_store=False,
)
def countings(
    session: Session,
    folder: Annotated[
        list[Path], typer.Argument(metavar="FOLDER...", help="The arms, or folders of arms.", show_default=False)
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="Write them with their manifests there, as JSON.")
    ] = None,
) -> None:
    from trivet.cli.lab_runs import count_arms
    from trivet.cli.views.countings import lines

    value = count_arms(folder, out)
    session.show(value, lambda: lines(value))
