"""Putting a store in order: what it could do without, shown or forgotten, and brought back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Annotated

import typer

from trivet.cli.command import command
from trivet.cli.output import Line, line
from trivet.cli.session import Session
from trivet.errors import InvalidInput
from trivet.types import Tidy, TidyKind

HEADINGS: dict[TidyKind, str] = {
    "duplicate": "Duplicates",
    "expired": "Expired",
    "unused": "Never recalled",
    "unhelpful": "Never useful",
    "orphan": "Orphans",
}
ACTS = {"forget": "would be forgotten", "look": "left alone"}


@command(
    "tidy",
    "Find duplicates, what has expired, was never recalled or useful, or lost its file; forget it only with --yes.",
    more="Nothing is purged: what a run forgot, --undo brings back. What is not beyond doubt (it has links, or stands "
    "in a file) is shown and left alone. What was never recalled, or came and never helped, is forgotten only if you "
    "name it with --kind unused or --kind unhelpful.",
    example="trivet tidy --dry-run\ntrivet tidy --yes --kind duplicate\ntrivet tidy --undo",
)
def tidy(
    session: Session,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be done; so too without --yes.")] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Forget what is found.")] = False,
    kinds: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="duplicate|expired|unused|unhelpful|orphan", help="Only such. Repeatable."),
    ] = None,
    unused_days: Annotated[
        int, typer.Option("--unused-days", min=1, metavar="NUMBER", help="Never recalled in so many days.")
    ] = 180,
    undo: Annotated[bool, typer.Option("--undo", help="Bring back what the last run forgot.")] = False,
) -> None:
    if yes and (dry_run or undo):
        raise InvalidInput("--yes forgets, --dry-run and --undo do not. Say one of them.")
    done = session.memory.tidy(kinds=_kinds(kinds or []), dry_run=not yes, unused_days=unused_days, undo=undo)
    session.show(done, lambda: _lines(done))


def _kinds(given: list[str]) -> list[TidyKind]:
    for name in given:
        if name not in HEADINGS:
            raise InvalidInput(f"--kind: {name!r} is not one of {', '.join(HEADINGS)}.")
    return [kind for kind in HEADINGS if kind in given]


def _lines(done: Tidy) -> Iterator[Line]:
    for kind, found in groupby(done.findings, key=lambda finding: finding.kind):
        yield line((HEADINGS[kind], "bold"))
        for finding in found:
            act = "forgotten" if finding.act == "forget" and not done.dry_run else ACTS[finding.act]
            yield line((finding.id, "cyan"), f"  {act}: {finding.reason}", indent=2)
            yield line((finding.content, "dim"), indent=4)
    for note in done.notes:
        yield line((note, "dim"))
    would = sum(finding.act == "forget" for finding in done.findings)
    if done.dry_run:
        yield line(f"{would} would be forgotten; --yes does it." if would else "There is nothing to forget.")
    elif done.findings or done.forgotten:
        yield line(f"Forgot {done.forgotten}. `trivet tidy --undo` brings them back.")
