"""`trivet lab federation`: other systems measured together with Trivet on one dataset."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from trivet.cli.command import command
from trivet.cli.commands.lab.measure import DATASET, EMBEDDER
from trivet.cli.session import Session

if TYPE_CHECKING:
    from trivet.cli.terminal import Line
    from trivet.lab.measure.federation import Federation, Federations, HeldOut
    from trivet.lab.measure.hit_analysis import Share

N = TypeVar("N", int, float)


@command(
    "lab federation",
    "Measure how other systems overlap with Trivet, and what fusing them gains.",
    more="A system is one in the settings; its ids must be the dataset's. One half of the "
    "queries chooses how many hits to fetch and their weight; the other half is reported. A "
    "system that does not answer a query ends the run. docs/lab.md has the rules of overlap.",
    example="trivet lab federation scifact --member grep --fetch-k 10,30,100 --weight 1,4 --out "
    "runs/grep.json",
    uses_store=False,
)
def federation(
    session: Session,
    dataset: Annotated[str, DATASET],
    member: Annotated[
        list[str],
        typer.Option(
            "--member",
            metavar="NAME",
            help="A system from the settings. Repeatable.",
            show_default=False,
        ),
    ],
    config: Annotated[
        str, typer.Option("--config", metavar="SPEC", help="Trivet's own recipe.")
    ] = "default",
    fetch_k: Annotated[
        str, typer.Option("--fetch-k", metavar="A,B,...", help="The numbers of hits to fetch.")
    ] = "10,30,100",
    weight: Annotated[
        str,
        typer.Option(
            "--weight",
            metavar="A,B,...",
            help="The weights of the system; Trivet's lexical leg has 1.",
        ),
    ] = "1,2,4,8",
    k: Annotated[
        int,
        typer.Option(
            "--k", min=1, max=20, metavar="NUMBER", help="The depth at which overlap is measured."
        ),
    ] = 10,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The JSON file to write.")
    ] = None,
    embedder: Annotated[str, EMBEDDER] = "bundled",
) -> None:
    from trivet.cli.commands.lab.runs import measure_members

    depths, weights = (
        numbers(fetch_k, "--fetch-k", int, 1000),
        numbers(weight, "--weight", float, 1000),
    )
    result = measure_members(dataset, member, config, depths, weights, k, out, embedder)
    session.show(result, lambda: federation_lines(result))


def numbers(text: str, option: str, kind: type[N], most: int) -> list[N]:
    from trivet.errors import InvalidInput

    try:
        values = [kind(item) for item in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(0 < value <= most for value in values):
        raise InvalidInput(
            f"{option} {text!r}: give numbers above 0 and up to {most}, separated by commas."
        )
    return values


def federation_lines(result: Federation | Federations) -> Iterator[Line]:
    from trivet.cli.terminal import line
    from trivet.lab.measure.federation import Federation

    if isinstance(result, Federation):
        yield from _member(result)
        return
    for one in result.members:
        yield line((one.member, "bold magenta"))
        yield from _member(one)
        yield line("")
    yield line(("All together", "bold magenta"))
    chosen = (
        f"{name}: fetch_k {one.fetch_k}, weight {one.weight:g}"
        for name, one in result.together.chosen.items()
    )
    yield line("; ".join(chosen))
    yield from _against("All of them", result.together.held_out)


def _member(result: Federation) -> Iterator[Line]:
    from trivet.cli.commands.lab.tables import table
    from trivet.cli.terminal import line

    found = result.overlap
    yield line(
        (
            f"Queries with something relevant in the first {found.k} hits, of {result.queries}",
            "bold",
        )
    )
    cells = {
        "both": found.both,
        "only trivet": found.only_trivet,
        f"only {result.member}": found.only_member,
        "neither": found.neither,
        f"recall@{found.k} of trivet": found.recall_trivet,
        f"recall@{found.k} of {result.member}": found.recall_member,
        f"recall@{found.k} of both together": found.recall_union,
        "both together, above the better one": found.gain,
    }
    yield from table(
        ("", "mean", "95 % interval"), [(name, *_cells(share)) for name, share in cells.items()]
    )
    yield line((result.rules.sentence, "bold"))
    yield line("")
    yield line(("nDCG@10 by hits fetched and weight", "bold"))
    rows = [
        (
            f"fetch_k {point.fetch_k}, weight {point.weight:g}",
            f"{point.chosen_on:.4f}",
            f"{point.held_out:.4f}",
        )
        for point in result.points
    ]
    yield from table(("", "half it is chosen on", "held-out half"), rows, strong=0)
    yield line("")
    yield from _against("The first of these", result.held_out)
    if result.unknown:
        yield line(
            (
                f"{result.unknown} hits of {result.member} have ids that are not in the dataset.",
                "yellow",
            )
        )


def _against(what: str, held_out: Sequence[HeldOut]) -> Iterator[Line]:
    from trivet.cli.commands.lab.tables import table
    from trivet.cli.terminal import line
    from trivet.lab.measure.comparison import interval_text

    yield line(
        (f"{what} against each alone, on the {held_out[0].queries} held-out queries", "bold")
    )
    rows = [
        (
            f"{one.measure}, {one.against}",
            f"{one.base:.4f}",
            f"{one.fused:.4f}",
            f"{one.difference:+.4f}",
            interval_text(one.low, one.high),
            f"{one.p:.4f}",
        )
        for one in held_out
    ]
    yield from table(("", "alone", "fused", "difference", "95 % interval", "p"), rows)


def _cells(share: Share) -> tuple[str, str]:
    return f"{share.mean:.4f}", f"{share.low:.4f} to {share.high:.4f}"
