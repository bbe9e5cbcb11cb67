"""`trivet lab sweep` and `trivet lab ablate`: many recipes at once, each compared with one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trivet.cli.command import command
from trivet.cli.commands.lab import DATASET, EMBEDDER
from trivet.cli.session import Session


@command(
    "lab sweep",
    "Measure every combination of the values given, and rank them by nDCG@10.",
    more="Each is compared with the first combination, corrected for how many there are. Legs are retrieved once for "
    "each way of retrieving, so fusions are cheap. The best of many looks better than it is: confirm it on other data.",
    example="trivet lab sweep house --recipe 'rrf(k={k}, lexical={w}) | depth({d})' "
    "--vary k=10,20,60 --vary w=1,2 --vary d=20,50 --out runs/rrf.json",
    uses_store=False,
)
def sweep(
    session: Session,
    dataset: Annotated[str, DATASET],
    recipe: Annotated[
        str, typer.Option("--recipe", metavar="TEMPLATE", help="A recipe with {slots}.", show_default=False)
    ],
    vary: Annotated[
        list[str],
        typer.Option("--vary", metavar="SLOT=A,B,...", help="The values of a slot. Repeatable.", show_default=False),
    ],
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="A JSON file for the result, which `report` draws.")
    ] = None,
    embedder: Annotated[str, EMBEDDER] = "bundled",
) -> None:
    from trivet.cli.lab_runs import sweep_grid, varied
    from trivet.cli.views.lab import swept

    result = sweep_grid(dataset, recipe, varied(vary), out, embedder)
    session.show(result, lambda: swept(result))


@command(
    "lab ablate",
    "Take each part out of a recipe in turn, and see what it was worth.",
    more="The parts are the legs, the exact-match bonus, the importance prior and the search for all words first. Each "
    "result is compared with the whole recipe. Beside it stands, for each leg that can search alone, where its hits "
    "overlap with those of the recipe without it, and what the rules of overlap say: see `trivet lab federation`.",
    example="trivet lab ablate house --config default\ntrivet lab ablate house --out runs/ablation.json",
    uses_store=False,
)
def ablate(
    session: Session,
    dataset: Annotated[str, DATASET],
    config: Annotated[str, typer.Option("--config", metavar="SPEC", help="A recall recipe.")] = "default",
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="A JSON file for the result.")] = None,
    embedder: Annotated[str, EMBEDDER] = "bundled",
) -> None:
    from trivet.cli.lab_runs import ablate_config
    from trivet.cli.views.lab import ablated

    result = ablate_config(dataset, config, embedder, out)
    session.show(result, lambda: ablated(result))
