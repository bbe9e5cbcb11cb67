"""Commands that judge pooled results blind."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from trivet.cli.command import command
from trivet.cli.session import Session
from trivet.cli.terminal import STOPPED, DelayedProgress, Line, line, printable

if TYPE_CHECKING:
    from trivet.lab.datasets.dataset import Dataset
    from trivet.lab.datasets.judgements import Agreement, Exported, Record
    from trivet.lab.datasets.pools import Pool

PERSON = "person"
# The lowest weighted kappa to trust; Landis and Koch call 0.41 to 0.60 moderate.
TRUSTED_KAPPA = 0.6


@command(
    "lab pool",
    "Pool the results of several arms for blind judging.",
    more="Shuffles the first documents of every arm and hides which arm found which. A share is "
    "judged again later to measure agreement.",
    example="trivet lab pool house runs --out pool.jsonl\ntrivet lab judge pool.jsonl",
    uses_store=False,
)
def pool(
    session: Session,
    dataset: Annotated[
        str,
        typer.Argument(metavar="DATASET", help="The dataset of the runs.", show_default=False),
    ],
    runs: Annotated[
        list[Path],
        typer.Argument(
            metavar="RUN...", help="Folders that `trivet lab run` wrote.", show_default=False
        ),
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="The pool to write.", show_default=False)
    ],
    depth: Annotated[
        int,
        typer.Option(
            "--depth",
            min=1,
            max=100,
            metavar="NUMBER",
            help="The number of documents from each arm.",
        ),
    ] = 10,
    double: Annotated[
        float,
        typer.Option("--double", min=0, max=1, metavar="NUMBER", help="The share to judge twice."),
    ] = 0.15,
    only_unjudged: Annotated[
        bool, typer.Option("--only-unjudged", help="Skip pairs that the dataset already judges.")
    ] = False,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="NUMBER", help="The random seed of the order.")
    ] = 0,
) -> None:
    from trivet.lab.datasets.pools import find_arms, make_pool, open_dataset, write_pool

    place = str(Path(dataset).resolve()) if Path(dataset).is_dir() else dataset
    made = make_pool(
        open_dataset(place),
        place,
        find_arms(runs),
        depth=depth,
        double=double,
        seed=seed,
        only_unjudged=only_unjudged,
    )
    write_pool(made, out)
    _show_pool(session, made, out)


def _show_pool(session: Session, made: Pool, out: Path) -> None:
    twice = sum(entry.again for entry in made.entries)
    pairs = len(made.entries) - twice
    value = {"path": str(out), "arms": made.arms, "pairs": pairs, "judged_twice": twice}
    text = f"{pairs} pairs of {made.arms} arms are in {out}; {twice} of them are judged twice."
    session.show(value, lambda: [line(text)])


@command(
    "lab judge",
    "Judge a pool blind, from 0 to 3, in the terminal or with a chat endpoint.",
    more="Keys: 0 1 2 3 grade, s skip, u undo, q quit. Judgments are saved next to the pool; run "
    "it again to continue. The exported dataset uses these grades; for a pair judged twice, the "
    "lower. --llm sends the texts to the endpoint, except sensitive ones; if "
    "it leaves other pairs without a grade, the exit status is 1, and the same command retries "
    "them.",
    example="trivet lab judge pool.jsonl --export judged\n"
    "trivet lab judge pool.jsonl --llm openai:qwen3@http://127.0.0.1:11434/v1",
    uses_store=False,
)
def judge(
    session: Session,
    pool: Annotated[
        Path,
        typer.Argument(
            metavar="POOL", help="The file that `trivet lab pool` wrote.", show_default=False
        ),
    ],
    llm: Annotated[
        str | None,
        typer.Option("--llm", metavar="openai:MODEL@URL", help="The chat endpoint that judges."),
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Only show progress and agreement.")] = False,
    export: Annotated[
        Path | None,
        typer.Option("--export", metavar="DIR", help="Only write the judged dataset."),
    ] = None,
) -> int:
    from trivet.lab.datasets.judgements import Record, agreement, record_file
    from trivet.lab.datasets.judges import NOT_SENT
    from trivet.lab.datasets.pools import dataset_of, read_pool

    whole = read_pool(pool)
    dataset = dataset_of(whole)
    record = Record(record_file(pool), whole, llm or PERSON)
    ungraded: Mapping[str, int] = {}
    exported: Exported | None = None
    if export is not None:
        from trivet.lab.datasets.judgements import export as write_out

        exported = write_out(dataset, whole, record.grades, export)
    elif not show:
        ungraded = (
            _by_endpoint(llm, whole, dataset, record)
            if llm
            else _judge_at_terminal(whole, dataset, record)
        )
    agreed = agreement(whole, record.grades)
    value = _judged_value(whole, record, agreed, ungraded, exported)
    session.show(value, lambda: _judged_lines(whole, record, agreed, ungraded, exported, export))
    return STOPPED if set(ungraded) - {NOT_SENT} else 0


def _judge_at_terminal(pool: Pool, dataset: Dataset, record: Record) -> Mapping[str, int]:
    from trivet.lab.datasets.judges import judge_at_terminal

    # Standard output carries only the result.
    judge_at_terminal(pool, dataset, record, sys.stdin, _with_escapes(sys.stderr), printable)
    return {}


def _with_escapes(stream: TextIO) -> TextIO:
    """Escape characters that the stream's locale cannot show, instead of failing."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def _by_endpoint(llm: str, pool: Pool, dataset: Dataset, record: Record) -> Mapping[str, int]:
    from trivet.lab.datasets.judges import judge_by_endpoint
    from trivet.lab.measure.complete_retrieval import LONG_LIMITS
    from trivet.models.chat import Chat

    with DelayedProgress("judging", lambda _: len(pool.entries) - len(record.grades)) as progress:
        return judge_by_endpoint(Chat(llm, LONG_LIMITS), pool, dataset, record, progress)


def _judged_value(
    pool: Pool,
    record: Record,
    agreed: Agreement,
    ungraded: Mapping[str, int],
    exported: Exported | None,
) -> dict[str, Any]:
    return {
        "entries": len(pool.entries),
        "judged": len(record.grades),
        "skipped": record.skipped,
        "left": ungraded,
        "agreement": agreed,
        "exported": exported,
    }


def _judged_lines(
    pool: Pool,
    record: Record,
    agreed: Agreement,
    ungraded: Mapping[str, int],
    exported: Exported | None,
    folder: Path | None,
) -> Iterator[Line]:
    yield line(f"{len(record.grades)} of {len(pool.entries)} judged, {record.skipped} skipped.")
    for reason, count in ungraded.items():
        yield line((f"Not judged: {count} ({reason}).", "yellow"))
    if agreed.kappa is not None:
        yield line(
            f"Judged twice: {agreed.pairs}, {agreed.same} with the same grade; weighted kappa "
            f"{agreed.kappa:.2f}."
        )
        if agreed.kappa < TRUSTED_KAPPA:
            yield line(
                (
                    "This agreement is low: define the grades more precisely before you use the "
                    "set.",
                    "yellow",
                )
            )
    elif agreed.pairs:
        yield line(
            f"Judged twice: {agreed.pairs}, all with one single grade, so agreement is still "
            "unknown."
        )
    if exported is not None:
        yield line(
            f"Written to {folder}: {exported.added} judgments added, {exported.changed} changed, "
            f"{exported.confirmed} confirmed, {exported.kept} kept."
        )
