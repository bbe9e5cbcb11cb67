"""`trivet tune`: find a better recipe on the user's own store, and adopt or revert it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trivet.cli.command import command
from trivet.cli.session import Session
from trivet.cli.terminal import STOPPED, DelayedProgress, Line, line, write_lines
from trivet.errors import InvalidInput

if TYPE_CHECKING:
    from trivet.lab.tune.adopt import Change
    from trivet.lab.tune.tuning import Gain, Plan, Validation


@command(
    "tune",
    "Find out whether another recipe recalls better from your own store.",
    more="Derives test questions from your memories, never from sensitive ones, and reports the "
    "gain on questions that did not choose the recipe. --apply adopts it only if the gain is "
    "proven and no kind of question loses; otherwise the exit status is 1. Questions and results "
    "stay in a private folder next to the store. --llm sends the sampled memories to that "
    "endpoint.",
    example="trivet tune\ntrivet tune --apply\ntrivet tune --rollback\n"
    "trivet tune --llm openai:qwen3@http://127.0.0.1:11434/v1",
)
def tune(
    session: Session,
    apply: Annotated[
        bool, typer.Option("--apply", help="Adopt the recipe if it passes the gate.")
    ] = False,
    rollback: Annotated[
        bool, typer.Option("--rollback", help="Restore the recipe from before the last --apply.")
    ] = False,
    llm: Annotated[
        str | None,
        typer.Option(
            "--llm",
            metavar="openai:MODEL@URL",
            help="A chat endpoint that writes paraphrased questions too.",
        ),
    ] = None,
    memories: Annotated[
        int,
        typer.Option(
            "--memories",
            min=50,
            max=5_000,
            metavar="NUMBER",
            help="Maximum number of memories to sample.",
        ),
    ] = 200,
    seed: Annotated[
        int, typer.Option("--seed", min=0, metavar="NUMBER", help="The random seed of the sample.")
    ] = 0,
) -> int:
    if apply and rollback:
        raise InvalidInput("Give --apply or --rollback, not both.")
    return _roll_back(session) if rollback else _tune(session, apply, llm, memories, seed)


def _tune(session: Session, apply: bool, llm: str | None, memories: int, seed: int) -> int:
    from trivet.lab.measure.complete_retrieval import LONG_LIMITS
    from trivet.lab.tune import adopt
    from trivet.lab.tune.tuning import Tuning
    from trivet.models.chat import Chat

    chat = Chat(llm, LONG_LIMITS) if llm else None
    engine = session.memory.engine
    session.embed_pending()
    with DelayedProgress("asking the model", lambda _: memories) as asking:
        tuning = Tuning(engine, most_memories=memories, seed=seed, chat=chat, asking=asking)
    plan = tuning.plan
    if not session.as_json:
        write_lines(_plan_lines(plan, chat.endpoint if chat else None))
    with DelayedProgress("measuring", lambda _: plan.candidates * len(plan.probes)) as progress:
        found = tuning.run(progress)
    store = session.file
    folder = adopt.save_results(store, plan, found)
    adopted = apply and found.passed and found.recipe != plan.present
    change = adopt.apply(store, found.recipe) if adopted else None
    session.show(
        _value(plan, found, folder, change),
        lambda: _outcome_lines(plan, found, folder, apply, change),
    )
    return STOPPED if apply and not adopted else 0


def _roll_back(session: Session) -> int:
    from trivet.lab.tune.adopt import roll_back

    change = roll_back(session.file)
    text = f"recipe = {change.after!r}" if change.after else "no recipe, so the default applies"
    session.show(
        change, lambda: [line(f"Restored {change.file} to its state before tuning: {text}.")]
    )
    return 0


def _value(plan: Plan, found: Validation, folder: Path, change: Change | None) -> dict[str, Any]:
    return {
        "plan": {
            "memories": plan.memories,
            "probes": len(plan.probes),
            "kinds": plan.kinds,
            "skipped": plan.skipped,
            "candidates": plan.candidates,
            "estimated_seconds": round(plan.seconds, 1),
            "folds": plan.folds,
            "seed": plan.seed,
        },
        "present": plan.present,
        "recipe": found.recipe,
        "by_fold": found.by_fold,
        "overall": found.overall,
        "by_kind": found.by_kind,
        "passed": found.passed,
        "gate": found.gate,
        "losing": found.losing,
        "applied": change,
        "folder": str(folder),
    }


def _plan_lines(plan: Plan, endpoint: str | None) -> Iterator[Line]:
    kinds = ", ".join(f"{count} {kind}" for kind, count in plan.kinds.items())
    yield line(("Plan", "bold magenta"))
    yield line(
        f"{len(plan.probes)} probes from {plan.memories} of {plan.usable} memories: {kinds}."
    )
    for reason, count in plan.skipped.items():
        yield line((f"Skipped: {count} ({reason}).", "yellow"))
    if endpoint:
        yield line(
            f"The texts of the sampled memories were sent to {endpoint}; sensitive ones were not."
        )
    yield line(
        f"At most {plan.candidates} recipes in {plan.folds} folds, about "
        f"{max(1, round(plan.seconds))} seconds. The current one is {plan.present}"
    )
    yield line("")


def _outcome_lines(
    plan: Plan, found: Validation, folder: Path, apply: bool, change: Change | None
) -> Iterator[Line]:
    yield line(
        ("Held-out gain", "bold magenta"), "(measured on probes that did not choose the recipe)"
    )
    for gain in found.overall:
        yield _gain_line(f"{gain.measure}", gain)
    yield line("")
    for gain in found.by_kind:
        yield _gain_line(f"{gain.kind}, {gain.measure} ({gain.count})", gain)
    yield line("")
    yield from _verdict_lines(plan, found, apply, change)
    yield line((f"Probes and results are in {folder}, readable only by you.", "dim"))


def _gain_line(name: str, gain: Gain) -> Line:
    sure = "green" if gain.low > 0 else "red" if gain.high < 0 else ""
    figures = (
        f"{gain.present:.3f} -> {gain.candidate:.3f}  {gain.difference:+.3f} ({gain.low:+.3f} to "
        f"{gain.high:+.3f})"
    )
    return line((f"{name:<28}", "bold dim"), (figures, sure))


def _verdict_lines(
    plan: Plan, found: Validation, apply: bool, change: Change | None
) -> Iterator[Line]:
    if found.recipe == plan.present:
        yield line(("The current recipe is the best of those tried; nothing to adopt.", "bold"))
        return
    yield line("Chosen on all probes: ", (found.recipe, "cyan"))
    for reason in (*found.gate.reasons, *(f"a kind of probe loses: {one}" for one in found.losing)):
        yield line((f"The gate rejects it: {reason}.", "yellow"))
    if found.gate.broken:
        yield line((f"{len(found.gate.mended)} queries that failed now pass.", "dim"))
    if change is not None:
        yield line(
            (
                f"Adopted in {change.file}. `trivet tune --rollback` restores the previous one.",
                "bold green",
            )
        )
    elif found.passed:
        yield line(("It passes the gate. `trivet tune --apply` adopts it.", "bold green"))
    elif apply:
        yield line(("Nothing was changed.", "bold"))
