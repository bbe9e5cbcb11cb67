"""`trivet lab from-store`: a dataset made from the user's own memories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trivet.cli.command import command
from trivet.cli.session import Session
from trivet.cli.terminal import DelayedProgress, Line, line, write_json_atomically
from trivet.errors import Conflict

if TYPE_CHECKING:
    from trivet.lab.tune.store_dataset import StoreDataset
    from trivet.models.chat import Chat

NewFolderOption = Annotated[
    Path,
    typer.Option(
        "--out",
        metavar="DIR",
        help="The folder to write, which must be new.",
        show_default=False,
    ),
]
JudgedOption = Annotated[
    Path | None,
    typer.Option(
        "--judged",
        metavar="FILE",
        help="Use only the questions you graded in the page's Compare, from the file it saved.",
    ),
]


@command(
    "lab from-store",
    "Make a dataset from your own memories, with questions in several strata and their answers.",
    more="docs/lab.md lists the questions and says what they can show. The model in --llm or the "
    "settings (graph_llm, else capture_llm) writes paraphrased ones; it gets the memories it "
    "writes for. Sensitive memories, secrets and private parts are never written or sent; "
    "everything else is, unencrypted.",
    example="trivet lab from-store --out mine\n"
    "trivet lab from-store --judged judged.jsonl --out mine\n"
    "trivet lab run mine --config default --config 'rrf(k=60)' --out runs",
)
def from_store(
    session: Session,
    out: NewFolderOption,
    questions: Annotated[
        int,
        typer.Option(
            "--questions",
            min=1,
            max=1_000,
            metavar="NUMBER",
            help="Maximum number of questions in each stratum.",
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
        int,
        typer.Option("--seed", min=0, metavar="NUMBER", help="The random seed of the questions."),
    ] = 0,
    judged: JudgedOption = None,
) -> None:
    from trivet.lab.datasets.plain_layout import save
    from trivet.lab.tune.store_dataset import read_judged

    _check_new(out)
    grades = read_judged(judged) if judged else None
    chat = None if rules_only or grades else _chat(session, llm)
    made = _made(session, questions, seed, chat, grades)
    _check_new(out)
    save(made.dataset, out)
    value = _value(made, out, questions, seed, judged=grades is not None)
    write_json_atomically(out / "manifest.json", value)
    session.show(value, lambda: _lines(made, value, chat))


def _check_new(out: Path) -> None:
    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise Conflict(f"{out} already exists, and nothing was overwritten. Name a new folder.")


def _chat(session: Session, llm: str | None) -> Chat | None:
    from trivet.lab.measure.complete_retrieval import LONG_LIMITS
    from trivet.models.chat import Chat

    settings = session.memory.settings
    spec = llm or settings.graph_llm or settings.capture_llm
    return Chat(spec, LONG_LIMITS) if spec else None


def _made(
    session: Session,
    questions: int,
    seed: int,
    chat: Chat | None,
    judged: dict[str, dict[str, int]] | None,
) -> StoreDataset:
    from trivet.lab.tune.store_dataset import make_dataset

    engine = session.memory.engine
    reading = DelayedProgress("reading", lambda _: engine.store.memories.stats().memories["active"])
    asking = DelayedProgress(f"asking {chat.model if chat else ''}", lambda _: questions)
    with reading, asking:
        return make_dataset(
            engine,
            most=questions,
            seed=seed,
            chat=chat,
            progress=reading,
            asking=asking,
            judged=judged,
        )


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


def _lines(made: StoreDataset, value: dict[str, Any], chat: Chat | None) -> Iterator[Line]:
    from trivet.cli.commands.lab.tables import table

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
