"""`trivet lab from-store`: a dataset of one's own memories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trivet.cli.command import command
from trivet.cli.session import Session

if TYPE_CHECKING:
    from trivet.cli.output import Line
    from trivet.lab.tune.store_dataset import StoreDataset
    from trivet.models.chat import Chat


@command(
    "lab from-store",
    "Make a dataset of your own memories: the memories, questions in several strata, and who answers them.",
    more="Rules make the questions of the memories' own words: their openings, rare words, sentences in another order, "
    "synonyms, parts of long ones, recent ones, and short, medium and long ones by one rule. What was said with "
    "`trivet feedback` is asked as it was. If the settings name a language model that reads memories (graph_llm, or "
    "else capture_llm), or --llm does, it writes questions in other words, and gets the texts of the memories it "
    "writes for. Sensitive memories, secrets and private parts are never written or sent; everything else is, in "
    "clear. Such questions can show whether a change finds more of your memories by words and whether it favours a "
    "length. They cannot show how well your own questions are answered: docs/lab.md says why.",
    example="trivet lab from-store --out mine\ntrivet lab from-store --judged judged.jsonl --out mine\n"
    "trivet lab run mine --config default --config 'rrf(k=60)' --out runs",
)
def from_store(
    session: Session,
    out: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="The folder to write; it must be new.", show_default=False)
    ],
    questions: Annotated[
        int, typer.Option("--questions", min=1, max=1_000, help="At most so many questions in each stratum.")
    ] = 50,
    llm: Annotated[
        str | None,
        typer.Option("--llm", metavar="openai:MODEL@URL", help="The chat endpoint; else as the settings name one."),
    ] = None,
    rules_only: Annotated[bool, typer.Option("--rules-only", help="Ask no language model.")] = False,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another seed makes other questions.")] = 0,
    judged: Annotated[
        Path | None,
        typer.Option("--judged", metavar="FILE", help="Instead, the questions graded on the page: what Compare saved."),
    ] = None,
) -> None:
    from trivet.cli.stderr import DelayedProgress
    from trivet.lab.datasets.plain_layout import save
    from trivet.lab.tune.store_dataset import make_dataset, read_judged

    _check_new(out)
    grades = read_judged(judged) if judged else None
    chat = None if rules_only or grades else _chat(session, llm)
    engine = session.memory.engine
    reading = DelayedProgress("reading", lambda _: engine.store.memories.stats().memories["active"])
    with reading, DelayedProgress(f"asking {chat.model if chat else ''}", lambda _: questions) as asking:
        made = make_dataset(
            engine, most=questions, seed=seed, chat=chat, progress=reading, asking=asking, judged=grades
        )
    _check_new(out)
    save(made.dataset, out)
    value = _value(made, out, questions, seed, judged=grades is not None)
    _write_manifest(out, value)
    session.show(value, lambda: _lines(made, value, chat))


def _check_new(out: Path) -> None:
    from trivet.errors import Conflict

    if out.exists() and not (out.is_dir() and not any(out.iterdir())):
        raise Conflict(f"{out} is there already, and nothing is overwritten. Name a new folder.")


def _chat(session: Session, llm: str | None) -> Chat | None:
    from trivet.lab.measure.complete_retrieval import LONG_LIMITS
    from trivet.models.chat import Chat

    settings = session.memory.settings
    spec = llm or settings.graph_llm or settings.capture_llm
    return Chat(spec, LONG_LIMITS) if spec else None


def _value(made: StoreDataset, out: Path, questions: int, seed: int, judged: bool) -> dict[str, Any]:
    from trivet.lab.measure.run import environment
    from trivet.lab.tune.store_dataset import CAN_SHOW, CANNOT_SHOW, JUDGED_CAN_SHOW, JUDGED_CANNOT_SHOW, strata_of

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

    from trivet.cli.file_io import write_rows_atomically

    write_rows_atomically(out / "manifest.json", [msgspec.json.format(msgspec.json.encode(value), indent=1).decode()])


def _lines(made: StoreDataset, value: dict[str, Any], chat: Chat | None) -> Iterator[Line]:
    from trivet.cli.commands.lab.tables import table
    from trivet.cli.output import line

    yield line(f"{value['memories']:,} memories and {value['queries']:,} questions are in {value['folder']}.")
    rows = [(name, str(found["questions"]), f"{found['median_words']:g}") for name, found in value["strata"].items()]
    yield from table(("stratum", "questions", "median words of the answer"), rows)
    for reason, count in made.left_out.items():
        yield line((f"Memories left out: {count} ({reason}).", "yellow"))
    for reason, count in made.skipped.items():
        yield line((f"No question: {count} ({reason}).", "dim"))
    if chat is not None:
        yield line(f"The texts of the memories of the stratum paraphrase were sent to {chat.endpoint}.")
    yield line("")
    yield line(("They can show ", "bold"), f"{value['can_show']}.")
    yield line(("They cannot show ", "bold"), f"{value['cannot_show']}.")
