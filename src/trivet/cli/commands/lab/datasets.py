"""Commands that make datasets: from the user's store, or by judging pooled results blind."""

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
    from trivet.lab.datasets.judgements import Agreement, Exported, Pool, Record
    from trivet.lab.tune.store_dataset import StoreDataset
    from trivet.models.chat import Chat


@command(
    "lab from-store",
    "Make a dataset from your own memories, with questions in several strata and their answers.",
    more="Rules derive the questions from the memories' own words: openings, rare words, "
    "reordered sentences, synonyms, parts of long memories, recent ones, and short, medium "
    "and long ones by one rule. Questions from `trivet feedback` are used as they were "
    "asked. A language model writes paraphrased questions if the settings name one that "
    "reads memories (graph_llm, else capture_llm), or --llm does; it gets the texts of the "
    "memories it writes for. Sensitive memories, secrets and private parts are never written "
    "or sent; everything else is, unencrypted. Such questions show whether a change finds "
    "more of your memories by words and whether it favors a length. They do not show how "
    "well your own questions are answered; docs/lab.md says why.",
    example="trivet lab from-store --out mine\n"
    "trivet lab from-store --judged judged.jsonl --out mine\n"
    "trivet lab run mine --config default --config 'rrf(k=60)' --out runs",
)
def from_store(
    session: Session,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            metavar="DIR",
            help="The folder to write, which must be new.",
            show_default=False,
        ),
    ],
    questions: Annotated[
        int,
        typer.Option(
            "--questions", min=1, max=1_000, help="Maximum number of questions in each stratum."
        ),
    ] = 50,
    llm: Annotated[
        str | None,
        typer.Option(
            "--llm",
            metavar="openai:MODEL@URL",
            help="The chat endpoint; default: the one in the settings.",
        ),
    ] = None,
    rules_only: Annotated[
        bool, typer.Option("--rules-only", help="Ask no language model.")
    ] = False,
    seed: Annotated[
        int, typer.Option("--seed", min=0, help="The random seed of the questions.")
    ] = 0,
    judged: Annotated[
        Path | None,
        typer.Option(
            "--judged",
            metavar="FILE",
            help="Use the questions you graded on the page instead: the file that Compare saved.",
        ),
    ] = None,
) -> None:
    from trivet.cli.terminal import DelayedProgress
    from trivet.lab.datasets.plain_layout import save
    from trivet.lab.tune.store_dataset import make_dataset, read_judged

    _check_new(out)
    grades = read_judged(judged) if judged else None
    chat = None if rules_only or grades else _chat(session, llm)
    engine = session.memory.engine
    reading = DelayedProgress("reading", lambda _: engine.store.memories.stats().memories["active"])
    with (
        reading,
        DelayedProgress(f"asking {chat.model if chat else ''}", lambda _: questions) as asking,
    ):
        made = make_dataset(
            engine,
            most=questions,
            seed=seed,
            chat=chat,
            progress=reading,
            asking=asking,
            judged=grades,
        )
    _check_new(out)
    save(made.dataset, out)
    value = _value(made, out, questions, seed, judged=grades is not None)
    _write_manifest(out, value)
    session.show(value, lambda: _lines(made, value, chat))


def _check_new(out: Path) -> None:
    from trivet.errors import Conflict

    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise Conflict(f"{out} already exists, and nothing was overwritten. Name a new folder.")


def _chat(session: Session, llm: str | None) -> Chat | None:
    from trivet.lab.measure.complete_retrieval import LONG_LIMITS
    from trivet.models.chat import Chat

    settings = session.memory.settings
    spec = llm or settings.graph_llm or settings.capture_llm
    return Chat(spec, LONG_LIMITS) if spec else None


def _value(
    made: StoreDataset, out: Path, questions: int, seed: int, judged: bool
) -> dict[str, Any]:
    from trivet.lab.measure.run import environment
    from trivet.lab.tune.store_dataset import (
        CAN_SHOW,
        CANNOT_SHOW,
        JUDGED_CAN_SHOW,
        JUDGED_CANNOT_SHOW,
        strata_of,
    )

    return {
        "folder": str(out),
        "memories": len(made.dataset.documents),
        "queries": len(made.dataset.queries),
        "strata": strata_of(made.dataset),
        "left_out": made.left_out,
        "skipped": made.skipped,
        "model": made.model,
        "questions": questions,
        "dataset_sha256": made.dataset.fingerprint,
        "can_show": JUDGED_CAN_SHOW if judged else CAN_SHOW,
        "cannot_show": JUDGED_CANNOT_SHOW if judged else CANNOT_SHOW,
        **environment(),
        "seed": seed,
    }


def _write_manifest(out: Path, value: dict[str, Any]) -> None:
    import msgspec

    from trivet.cli.terminal import write_rows_atomically

    write_rows_atomically(
        out / "manifest.json", [msgspec.json.format(msgspec.json.encode(value), indent=1).decode()]
    )


def _lines(made: StoreDataset, value: dict[str, Any], chat: Chat | None) -> Iterator[Line]:
    from trivet.cli.commands.lab.tables import table
    from trivet.cli.terminal import line

    yield line(
        f"{value['memories']:,} memories and {value['queries']:,} questions are in "
        f"{value['folder']}."
    )
    rows = [
        (name, str(found["questions"]), f"{found['median_words']:g}")
        for name, found in value["strata"].items()
    ]
    yield from table(("stratum", "questions", "median words of the answer"), rows)
    for reason, count in made.left_out.items():
        yield line((f"Memories skipped: {count} ({reason}).", "yellow"))
    for reason, count in made.skipped.items():
        yield line((f"No question: {count} ({reason}).", "dim"))
    if chat is not None:
        yield line(f"The memories of the stratum paraphrase were sent to {chat.endpoint}.")
    yield line("")
    yield line(("They can show ", "bold"), f"{value['can_show']}.")
    yield line(("They cannot show ", "bold"), f"{value['cannot_show']}.")


PERSON = "person"
# The lowest weighted kappa to trust; Landis and Koch call 0.41 to 0.60 moderate.
TRUSTED_KAPPA = 0.6


@command(
    "lab pool",
    "Pool the results of several arms for blind judging.",
    more="Takes the first documents of every arm, shuffles them, and hides which arm found which. "
    "A share is judged again later to measure agreement.",
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
        int, typer.Option("--depth", min=1, max=100, help="The number of documents from each arm.")
    ] = 10,
    double: Annotated[
        float, typer.Option("--double", min=0, max=1, help="The share to judge twice.")
    ] = 0.15,
    only_unjudged: Annotated[
        bool, typer.Option("--only-unjudged", help="Skip pairs that the dataset already judges.")
    ] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="The random seed of the order.")] = 0,
) -> None:
    from trivet.lab.datasets.judgements import find_arms, make_pool, open_dataset, write_pool

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
    value = {
        "path": str(out),
        "arms": made.arms,
        "pairs": len(made.entries) - twice,
        "judged_twice": twice,
    }
    text = (
        f"{value['pairs']} pairs of {made.arms} arms are in {out}; {twice} of them are judged "
        "twice."
    )
    session.show(value, lambda: [line(text)])


@command(
    "lab judge",
    "Judge a pool blind, from 0 to 3, in the terminal or with a chat endpoint.",
    more="One key per pair: 0 1 2 3 grade, s skip, u undo, q quit; run it again to continue. "
    "Judgments are saved next to the pool. --export writes the dataset with them into a new "
    "folder: a pair judged here gets its grade from here (the lower of two), others keep "
    "theirs. With --llm the texts are sent to the endpoint, except sensitive ones; if it "
    "leaves other pairs without a grade, the exit status is 1, and the same command retries "
    "them. --show only shows the progress.",
    example="trivet lab judge pool.jsonl\ntrivet lab judge pool.jsonl --export judged\n"
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
    from trivet.lab.datasets.judgements import Record, agreement, dataset_of, read_pool, record_file
    from trivet.lab.datasets.judges import NOT_SENT

    whole = read_pool(pool)
    dataset = dataset_of(whole)
    record = Record(record_file(pool), whole, llm or PERSON)
    left: Mapping[str, int] = {}
    exported: Exported | None = None
    if export is not None:
        from trivet.lab.datasets.judgements import export as write_out

        exported = write_out(dataset, whole, record.grades, export)
    elif not show:
        left = (
            _by_endpoint(llm, whole, dataset, record)
            if llm
            else _judge_at_terminal(whole, dataset, record)
        )
    agreed = agreement(whole, record.grades)
    value = _judged_value(whole, record, agreed, left, exported)
    session.show(value, lambda: _judged_lines(whole, record, agreed, left, exported, export))
    return STOPPED if set(left) - {NOT_SENT} else 0


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
    left: Mapping[str, int],
    exported: Exported | None,
) -> dict[str, Any]:
    return {
        "entries": len(pool.entries),
        "judged": len(record.grades),
        "skipped": record.skipped,
        "left": left,
        "agreement": agreed,
        "exported": exported,
    }


def _judged_lines(
    pool: Pool,
    record: Record,
    agreed: Agreement,
    left: Mapping[str, int],
    exported: Exported | None,
    folder: Path | None,
) -> Iterator[Line]:
    yield line(f"{len(record.grades)} of {len(pool.entries)} judged, {record.skipped} skipped.")
    for reason, count in left.items():
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
