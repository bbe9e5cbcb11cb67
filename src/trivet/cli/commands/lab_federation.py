"""`trivet lab federation`: another system beside Trivet, measured on one dataset."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from trivet.cli.command import command
from trivet.cli.commands.lab import DATASET, EMBEDDER
from trivet.cli.session import Session

if TYPE_CHECKING:
    from trivet.cli.output import Line
    from trivet.lab.federation import Federation, Share

N = TypeVar("N", int, float)


@command(
    "lab federation",
    "Measure another system beside Trivet: where their hits overlap, and what fusing them is worth.",
    more="The system is one that the settings declare; its ids must be the dataset's. How many hits to fetch from it "
    "and how much they weigh is chosen on one half of the queries and reported on the other half.",
    example="trivet lab federation scifact --member grep --fetch-k 10,30,100 --weight 1,4 --out runs/grep.json",
    uses_store=False,
)
def federation(
    session: Session,
    dataset: Annotated[str, DATASET],
    member: Annotated[str, typer.Option("--member", metavar="NAME", help="The system.", show_default=False)],
    config: Annotated[str, typer.Option("--config", metavar="SPEC", help="Trivet's own recipe.")] = "default",
    fetch_k: Annotated[
        str, typer.Option("--fetch-k", metavar="A,B,...", help="Numbers of hits to fetch.")
    ] = "10,30,100",
    weight: Annotated[
        str, typer.Option("--weight", metavar="A,B,...", help="Weights of the system; our words have 1.")
    ] = "1,2,4,8",
    k: Annotated[int, typer.Option("--k", min=1, max=20, help="How deep the overlap is looked for.")] = 10,
    out: Annotated[Path | None, typer.Option("--out", metavar="FILE", help="A JSON file for the result.")] = None,
    embedder: Annotated[str, EMBEDDER] = "bundled",
) -> None:
    from trivet.cli.lab_runs import measure_member

    depths, weights = numbers(fetch_k, "--fetch-k", int, 1000), numbers(weight, "--weight", float, 1000)
    result = measure_member(dataset, member, config, depths, weights, k, out, embedder)
    session.show(result, lambda: lines(result))


def numbers(text: str, option: str, kind: type[N], most: int) -> list[N]:
    from trivet.errors import InvalidInput

    try:
        values = [kind(item) for item in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(0 < value <= most for value in values):
        raise InvalidInput(f"{option} {text!r}: give numbers above 0 and up to {most}, with commas between them.")
    return values


def lines(result: Federation) -> Iterator[Line]:
    from trivet.cli.output import line
    from trivet.cli.views.lab import interval, table

    found = result.overlap
    yield line((f"Something relevant among the first {found.k}, of {result.queries} queries", "bold"))
    cells = {
        "both": found.both,
        "only trivet": found.only_trivet,
        f"only {result.member}": found.only_member,
        "neither": found.neither,
        f"recall@{found.k} of trivet": found.recall_trivet,
        f"recall@{found.k} of {result.member}": found.recall_member,
        f"recall@{found.k} of both together": found.recall_union,
    }
    yield from table(("", "mean", "95 % interval"), [(name, *_cells(share)) for name, share in cells.items()])
    yield line("")
    yield line(("nDCG@10 by hits fetched and weight", "bold"))
    rows = [
        (f"fetch_k {point.fetch_k}, weight {point.weight:g}", f"{point.chosen_on:.4f}", f"{point.held_out:.4f}")
        for point in result.points
    ]
    yield from table(("", "half it is chosen on", "held-out half"), rows, strong=0)
    yield line("")
    yield line(
        (f"The first of these against either alone, on the {result.held_out[0].queries} held-out queries", "bold")
    )
    against = [
        (
            f"{one.measure}, {one.against}",
            f"{one.base:.4f}",
            f"{one.fused:.4f}",
            f"{one.difference:+.4f}",
            interval(one.low, one.high),
            f"{one.p:.4f}",
        )
        for one in result.held_out
    ]
    yield from table(("", "alone", "fused", "difference", "95 % interval", "p"), against)
    if result.unknown:
        yield line((f"{result.unknown} hits of {result.member} have ids that the dataset does not know.", "yellow"))


def _cells(share: Share) -> tuple[str, str]:
    return f"{share.mean:.4f}", f"{share.low:.4f} to {share.high:.4f}"
