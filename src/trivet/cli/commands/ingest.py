"""Files into memories, once or as they change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated

import typer

from trivet import Trivet, load_settings
from trivet.cli.command import command
from trivet.cli.session import Session
from trivet.cli.terminal import INVALID, DelayedProgress, Line, line, warn
from trivet.errors import InvalidInput, TrivetError
from trivet.settings.locations import is_file

if TYPE_CHECKING:
    from trivet.sources.files import Ingested, Options
    from trivet.sources.files.parts import Skipped

# Of what was passed over for one reason.
NAMES_SHOWN = 5


@command(
    "ingest",
    "Take in a folder of notes, a transcript or an export of chats, and keep up with it.",
    more="Told again, it reads only files that have changed: what was edited is updated, what was moved keeps its id, "
    "what is gone is forgotten (and can be restored). The store remembers the options. A file that cannot be read is "
    "named and left out whole, and the exit status is 2. What is passed over by the rules is named too. Links out of "
    "the folder are not followed.",
    example="trivet ingest ~/notes --scope me/notes\ntrivet ingest ~/notes --watch\n"
    "trivet ingest ~/.claude/projects\ntrivet ingest ~/Downloads/conversations.json --dry-run",
    creates=True,
)
def ingest_files(
    session: Session,
    files: Annotated[
        Path | None,
        typer.Argument(metavar="PATH", help="The folder or file to take in.", show_default=False),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Go on until interrupted, whenever files change.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="What to call the folder; its own name if none."
        ),
    ] = None,
    scope: Annotated[
        str, typer.Option("--scope", "-s", metavar="TEXT", help="The scope of what is taken in.")
    ] = "",
    category: Annotated[
        str,
        typer.Option(
            "--category", "-c", metavar="TEXT", help="The category, where a file names none."
        ),
    ] = "",
    tags: Annotated[
        list[str] | None,
        typer.Option("--tags", "--tag", "-t", metavar="TEXT", help="A tag for all. Repeatable."),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            "--exclude", metavar="PATTERN", help="Leave out such paths from the folder. Repeatable."
        ),
    ] = None,
    listed: Annotated[
        bool, typer.Option("--list", help="List the folders that were taken in.")
    ] = False,
    dropped: Annotated[
        str | None,
        typer.Option("--drop", metavar="NAME", help="Forget all that came from this folder."),
    ] = None,
) -> int:
    from trivet.sources.files import Options

    if (files is not None) + listed + (dropped is not None) != 1:
        raise InvalidInput("Name the folder or file to take in, or say --list or --drop NAME.")
    if files is None:
        session.creates = False
        return _list_or_drop(session, dropped)
    options = Options(scope, category, tuple(tags or ()), tuple(exclude or ()))
    ingested = _once(session, files, name, options, dry_run)
    _show(session, ingested)
    if watch and not dry_run:
        _watch(session, files, options)
    return INVALID if ingested.problems else 0


def _list_or_drop(session: Session, dropped: str | None) -> int:
    from trivet.sources.files.ingest import drop, vaults

    if dropped is None:
        known = vaults(session.memory)
        listed = [line((vault.name, "bold"), f"  {vault.root}") for vault in known]
        session.show(known, lambda: listed or [line("Nothing was taken in yet.")])
        return 0
    count = drop(session.memory, dropped)
    told = f"{count} memories of {dropped} are forgotten."
    session.show({"vault": dropped, "forgotten": count}, lambda: [line(told)])
    return 0


def _once(
    session: Session, files: Path, name: str | None, options: Options, dry_run: bool
) -> Ingested:
    from trivet.sources.files import ingest

    total = [0]
    with (
        _store(session, dry_run) as memory,
        DelayedProgress("reading files", lambda _: total[0]) as progress,
    ):
        ingested = ingest(
            memory,
            files,
            name=name,
            options=options,
            dry_run=dry_run,
            begin=lambda count: total.__setitem__(0, count),
            progress=progress,
        )
    return ingested


@contextmanager
def _store(session: Session, dry_run: bool) -> Iterator[Trivet]:
    """To say what would be done makes no store: where there is none, all is said of an empty one."""
    settings = load_settings(path=session.path)
    if not dry_run or not is_file(settings.path) or session.file.exists():
        yield session.memory
        return
    with (
        TemporaryDirectory() as folder,
        Trivet.open(Path(folder) / "empty.db", background=False) as empty,
    ):
        yield empty


def _show(session: Session, ingested: Ingested) -> None:
    session.show(ingested, lambda: shown(ingested))
    if ingested.changed and not ingested.dry_run:
        session.embed_pending()


def _watch(session: Session, files: Path, options: Options) -> None:
    """Until interrupted. What goes wrong is told, and the next change is another chance."""
    from trivet.sources.files.watch import changes

    asked = files.expanduser().resolve()
    told: tuple[str, ...] = ()
    try:
        for _ in changes(asked):
            told = _ingest_again(session, asked, options, told)
    except KeyboardInterrupt:
        return  # that is how it ends; what was under way is whole or not there


def _ingest_again(
    session: Session, asked: Path, options: Options, told: tuple[str, ...]
) -> tuple[str, ...]:
    try:
        ingested = _once(session, asked, None, options, False)
    except TrivetError as error:
        warn(str(error))
        return told
    if ingested.changed or ingested.problems != told:
        _show(session, ingested)
    return ingested.problems


def shown(ingested: Ingested) -> Iterator[Line]:
    if not (
        ingested.files_read or ingested.files_unchanged or ingested.files_gone or ingested.problems
    ):
        yield line(
            "No notes, transcripts or exports are there. docs/ingest.md lists what can be ingested."
        )
        yield from _skipped(ingested.skipped)
        return
    yield line(_summary(ingested))
    if ingested.links_added or ingested.links_removed:
        yield line(f"{ingested.links_added} links made, {ingested.links_removed} taken back.")
    if ingested.left_forgotten:
        yield line(f"{ingested.left_forgotten} that you had forgotten by hand stay so.")
    if ingested.redacted:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(ingested.redacted.items()))
        done = "To be encrypted" if ingested.dry_run else "Encrypted"
        yield line((f"{done}, and replaced in the texts: {counts}.", "yellow"))
    for problem in ingested.problems:
        yield line((f"Left out: {problem}.", "red"))
    yield from _skipped(ingested.skipped)


def _skipped(skipped: Sequence[Skipped]) -> Iterator[Line]:
    """A line for each reason, with the first few names; --json has them all."""
    by_reason: dict[str, list[str]] = {}
    for one in skipped:
        by_reason.setdefault(one.reason, []).append(one.path)
    for reason, paths in by_reason.items():
        more = len(paths) - NAMES_SHOWN
        names = ", ".join(paths[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
        yield line((f"Passed over ({reason}): {names}.", "dim"))


def _summary(ingested: Ingested) -> str:
    """What has come of memories and files, without the zeros."""
    memories = ("stored", "updated", "moved", "forgotten", "unchanged")
    done = ", ".join(f"{count} {name}" for name in memories if (count := getattr(ingested, name)))
    would = "Would have: " if ingested.dry_run and done else ""
    read = f" in {_files(ingested.files_read)} read" if ingested.files_read else ""
    others = {"unchanged": ingested.files_unchanged, "gone": ingested.files_gone}
    beside = "".join(f"; {_files(count)} {name}" for name, count in others.items() if count)
    return f"{would}{done or 'Nothing new'}{read}{beside}."


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
