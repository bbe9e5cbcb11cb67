"""`trivet lab pool` and `trivet lab judge`: a judged set made blind, from what several ways to recall have found."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from trivet.cli.command import command
from trivet.cli.output import Line, line, printable
from trivet.cli.session import Session
from trivet.cli.stderr import STOPPED, DelayedProgress

if TYPE_CHECKING:
    from trivet.lab.datasets.dataset import Dataset
    from trivet.lab.datasets.judgements import Agreement, Exported, Record
    from trivet.lab.datasets.pool import Pool

PERSON = "person"
# Below this two looks agree too little for the set to settle anything (Landis and Koch call it moderate).
TRUSTED_KAPPA = 0.6


@command(
    "lab pool",
    "Pool what several arms found, to be judged blind.",
    more="Takes the first documents of every arm, shuffles them, and leaves out which arm found what. A share is "
    "judged twice, later, so that agreement can be measured.",
    example="trivet lab pool house runs --out pool.jsonl\ntrivet lab judge pool.jsonl",
    uses_store=False,
)
def pool(
    session: Session,
    dataset: Annotated[
        str, typer.Argument(metavar="DATASET", help="The dataset that the runs are of.", show_default=False)
    ],
    runs: Annotated[
        list[Path], typer.Argument(metavar="RUN...", help="Folders that `trivet lab run` wrote.", show_default=False)
    ],
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="The pool to write.", show_default=False)],
    depth: Annotated[int, typer.Option("--depth", min=1, max=100, help="How many documents of each arm.")] = 10,
    double: Annotated[float, typer.Option("--double", min=0, max=1, help="The share that is judged twice.")] = 0.15,
    only_unjudged: Annotated[
        bool, typer.Option("--only-unjudged", help="Leave out what the dataset has a judgement of.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed makes another order.")] = 0,
) -> None:
    from trivet.lab.datasets.pool import find_arms, make_pool, open_dataset, write_pool

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
    twice = sum(entry.again for entry in made.entries)
    value = {"path": str(out), "arms": made.arms, "pairs": len(made.entries) - twice, "judged_twice": twice}
    text = f"{value['pairs']} pairs of {made.arms} arms are in {out}, {twice} of them to be judged twice."
    session.show(value, lambda: [line(text)])


@command(
    "lab judge",
    "Judge a pool blind, 0 to 3, at the terminal or by a chat endpoint.",
    more="One key a pair: 0 1 2 3, s skip, u undo, q quit; the same command goes on where you stopped. Judgements are "
    "kept beside the pool. --export writes the dataset with them into a new folder: a pair judged here has the grade "
    "it got here (the lower of two), any other keeps its own. With --llm the texts are sent to the endpoint, except "
    "sensitive ones; if it leaves others without a grade, the exit status is 1 and the same command tries them again. "
    "--show only tells how far it is.",
    example="trivet lab judge pool.jsonl\ntrivet lab judge pool.jsonl --export judged\n"
    "trivet lab judge pool.jsonl --llm openai:qwen3@http://127.0.0.1:11434/v1",
    uses_store=False,
)
def judge(
    session: Session,
    pool: Annotated[Path, typer.Argument(metavar="POOL", help="What `trivet lab pool` wrote.", show_default=False)],
    llm: Annotated[
        str | None, typer.Option("--llm", metavar="openai:MODEL@URL", help="Let this chat endpoint judge.")
    ] = None,
    show: Annotated[bool, typer.Option("--show", help="Judge nothing; show progress and agreement.")] = False,
    export: Annotated[
        Path | None, typer.Option("--export", metavar="DIR", help="Judge nothing; write the judged dataset.")
    ] = None,
) -> int:
    from trivet.lab.datasets.judgements import Record, agreement, record_file
    from trivet.lab.datasets.judges import NOT_SENT
    from trivet.lab.datasets.pool import dataset_of, read_pool

    whole = read_pool(pool)
    dataset = dataset_of(whole)
    record = Record(record_file(pool), whole, llm or PERSON)
    left: Mapping[str, int] = {}
    told: Exported | None = None
    if export is not None:
        from trivet.lab.datasets.judgements import export as write_out

        told = write_out(dataset, whole, record.grades, export)
    elif not show:
        left = _by_endpoint(llm, whole, dataset, record) if llm else _judge_at_terminal(whole, dataset, record)
    agreed = agreement(whole, record.grades)
    value = _value(whole, record, agreed, left, told)
    session.show(value, lambda: _lines(whole, record, agreed, left, told, export))
    return STOPPED if set(left) - {NOT_SENT} else 0


def _judge_at_terminal(pool: Pool, dataset: Dataset, record: Record) -> Mapping[str, int]:
    """The dialogue goes to standard error, so that standard output carries the outcome alone."""
    from trivet.lab.datasets.judges import judge_at_terminal

    judge_at_terminal(pool, dataset, record, sys.stdin, _with_escapes(sys.stderr), printable)
    return {}


def _with_escapes(stream: TextIO) -> TextIO:
    """A terminal whose locale cannot show a character gets its code instead of an error."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


def _by_endpoint(llm: str, pool: Pool, dataset: Dataset, record: Record) -> Mapping[str, int]:
    from trivet.lab.datasets.judges import judge_by_endpoint
    from trivet.lab.measure.complete_retrieval import LONG_LIMITS
    from trivet.models.chat import Chat

    with DelayedProgress("judging", lambda _: len(pool.entries) - len(record.grades)) as progress:
        return judge_by_endpoint(Chat(llm, LONG_LIMITS), pool, dataset, record, progress)


def _value(
    pool: Pool, record: Record, agreed: Agreement, left: Mapping[str, int], told: Exported | None
) -> dict[str, Any]:
    return {
        "entries": len(pool.entries),
        "judged": len(record.grades),
        "skipped": record.skipped,
        "left": left,
        "agreement": agreed,
        "exported": told,
    }


def _lines(
    pool: Pool, record: Record, agreed: Agreement, left: Mapping[str, int], told: Exported | None, folder: Path | None
) -> Iterator[Line]:
    yield line(f"{len(record.grades)} of {len(pool.entries)} judged, {record.skipped} skipped.")
    for reason, count in left.items():
        yield line((f"Not judged: {count} ({reason}).", "yellow"))
    if agreed.kappa is not None:
        yield line(f"Judged twice: {agreed.pairs}, {agreed.same} alike; weighted kappa {agreed.kappa:.2f}.")
        if agreed.kappa < TRUSTED_KAPPA:
            yield line(("That is little agreement: sharpen what the grades mean before you trust the set.", "yellow"))
    elif agreed.pairs:
        yield line(f"Judged twice: {agreed.pairs}, all of them with one and the same grade, which says nothing yet.")
    if told is not None:
        yield line(
            f"Written to {folder}: {told.added} judgements added, {told.changed} changed, {told.confirmed} confirmed, "
            f"{told.kept} kept as they were."
        )
