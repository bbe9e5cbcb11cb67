"""`trivet ingest`: turn files into memories, once or whenever they change."""

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

NAMES_SHOWN = 5

# The store remembers these with the folder.
ScopeOption = Annotated[
    str, typer.Option("--scope", "-s", metavar="TEXT", help="The scope of the memories.")
]
CategoryOption = Annotated[
    str,
    typer.Option("--category", "-c", metavar="TEXT", help="The category, if a file names none."),
]
TagsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--tags", "--tag", "-t", metavar="TEXT", help="A tag for every memory. Repeatable."
    ),
]
ExcludeOption = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude", metavar="PATTERN", help="Skip these paths in the folder. Repeatable."
    ),
]


@command(
    "ingest",
    "Import a folder of notes, a transcript or a chat export, and keep up with changes.",
    more="A later run reads only changed files: an edited note updates its memory, a moved one "
    "keeps its id, a deleted one is forgotten. The store remembers the options. Skipped files "
    "are listed; one that cannot be read makes the exit status 2. Links out of the folder are "
    "not followed.",
    example="trivet ingest ~/notes --scope me/notes --watch\n"
    "trivet ingest ~/.claude/projects\ntrivet ingest ~/Downloads/conversations.json --dry-run",
    creates=True,
)
def ingest_files(
    session: Session,
    source: Annotated[
        Path | None,
        typer.Argument(metavar="PATH", help="The folder or file to ingest.", show_default=False),
    ] = None,
    watch: Annotated[
        bool, typer.Option("--watch", help="Keep running and ingest files whenever they change.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be done and write nothing.")
    ] = False,
    name: Annotated[
        str | None,
        typer.Option(
            "--name", metavar="NAME", help="Name of the folder in the store; default: its own name."
        ),
    ] = None,
    scope: ScopeOption = "",
    category: CategoryOption = "",
    tags: TagsOption = None,
    exclude: ExcludeOption = None,
    listed: Annotated[bool, typer.Option("--list", help="List the ingested folders.")] = False,
    dropped: Annotated[
        str | None,
        typer.Option("--drop", metavar="NAME", help="Forget every memory from this folder."),
    ] = None,
) -> int:
    from trivet.sources.files import Options

    actions = (source is not None) + listed + (dropped is not None)
    if actions != 1:
        raise InvalidInput(
            "Name a folder or file to ingest, or use --list or --drop NAME. Nothing was written."
        )
    if source is None:
        session.creates = False
        return _list_or_drop(session, dropped)
    options = Options(scope, category, tuple(tags or ()), tuple(exclude or ()))
    ingested = _once(session, source, name, options, dry_run)
    _show(session, ingested)
    if watch and not dry_run:
        _watch(session, source, options)
    return INVALID if ingested.problems else 0


def _list_or_drop(session: Session, dropped: str | None) -> int:
    from trivet.sources.files.ingestion import drop, vaults

    if dropped is None:
        known = vaults(session.memory)
        listed = [line((vault.name, "bold"), f"  {vault.root}") for vault in known]
        session.show(known, lambda: listed or [line("No ingested folders.")])
        return 0
    count = drop(session.memory, dropped)
    text = f"Forgot {_memories(count)} of {dropped}."
    session.show({"vault": dropped, "forgotten": count}, lambda: [line(text)])
    return 0


def _once(
    session: Session, source: Path, name: str | None, options: Options, dry_run: bool
) -> Ingested:
    from trivet.sources.files import ingest

    total = 0

    def begin(count: int) -> None:
        nonlocal total
        total = count

    with (
        _store(session, dry_run) as memory,
        DelayedProgress("reading files", lambda _: total) as progress,
    ):
        ingested = ingest(
            memory,
            source,
            name=name,
            options=options,
            dry_run=dry_run,
            begin=begin,
            progress=progress,
        )
    return ingested


@contextmanager
def _store(session: Session, dry_run: bool) -> Iterator[Trivet]:
    """Yield the store; a dry run without one uses an empty temporary store."""
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
    session.show(ingested, lambda: result_lines(ingested))
    if ingested.changed and not ingested.dry_run:
        session.embed_pending()


def _watch(session: Session, source: Path, options: Options) -> None:
    from trivet.sources.files.vault import changes

    folder = source.expanduser().resolve()
    reported: tuple[str, ...] = ()
    try:
        for _ in changes(folder):
            reported = _ingest_again(session, folder, options, reported)
    except KeyboardInterrupt:
        return  # the expected end; a transaction in progress is committed whole or rolled back


def _ingest_again(
    session: Session, folder: Path, options: Options, reported: tuple[str, ...]
) -> tuple[str, ...]:
    try:
        ingested = _once(session, folder, None, options, False)
    except TrivetError as error:
        warn(str(error))
        return reported
    if ingested.changed or ingested.problems != reported:
        _show(session, ingested)
    return ingested.problems


def result_lines(ingested: Ingested) -> Iterator[Line]:
    if not (
        ingested.files_read or ingested.files_unchanged or ingested.files_gone or ingested.problems
    ):
        yield line(
            "No notes (Markdown or text), transcripts (Claude Code or Codex) or chat exports "
            "(conversations.json) were found."
        )
        yield from _skipped(ingested.skipped)
        return
    yield line(_dry_run_summary(ingested) if ingested.dry_run else _summary(ingested))
    if ingested.links_added or ingested.links_removed:
        yield line(f"{ingested.links_added} links added, {ingested.links_removed} removed.")
    if ingested.left_forgotten:
        stay = "stays" if ingested.left_forgotten == 1 else "stay"
        yield line(f"{_memories(ingested.left_forgotten)} you forgot {stay} forgotten.")
    if ingested.redacted:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(ingested.redacted.items()))
        done = "Would encrypt and replace" if ingested.dry_run else "Encrypted and replaced"
        yield line((f"{done} in the texts: {counts}.", "yellow"))
    for problem in ingested.problems:
        yield line((f"Skipped: {problem}.", "red"))
    yield from _skipped(ingested.skipped)


def _skipped(skipped: Sequence[Skipped]) -> Iterator[Line]:
    by_reason: dict[str, list[str]] = {}
    for one in skipped:
        by_reason.setdefault(one.reason, []).append(one.path)
    for reason, paths in by_reason.items():
        more = len(paths) - NAMES_SHOWN
        names = ", ".join(paths[:NAMES_SHOWN]) + (f" and {more} more" if more > 0 else "")
        yield line((f"Skipped ({reason}): {names}.", "dim"))


def _summary(ingested: Ingested) -> str:
    memories = ("stored", "updated", "moved", "forgotten", "unchanged")
    done = ", ".join(f"{count} {name}" for name in memories if (count := getattr(ingested, name)))
    read = f" in {_files(ingested.files_read)} read" if ingested.files_read else ""
    others = {"unchanged": ingested.files_unchanged, "gone": ingested.files_gone}
    rest = "".join(f"; {_files(count)} {name}" for name, count in others.items() if count)
    return f"{done or 'Nothing new'}{read}{rest}."


def _dry_run_summary(ingested: Ingested) -> str:
    verbs = {"store": "stored", "update": "updated", "move": "moved", "forget": "forgotten"}
    would = ", ".join(
        f"{verb} {_memories(count)}"
        for verb, name in verbs.items()
        if (count := getattr(ingested, name))
    )
    unchanged = f"; {_memories(ingested.unchanged)} unchanged" if ingested.unchanged else ""
    files = {
        "read": ingested.files_read,
        "unchanged": ingested.files_unchanged,
        "gone": ingested.files_gone,
    }
    rest = "".join(f"; {_files(count)} {name}" for name, count in files.items() if count)
    return f"Dry run: would {would or 'change nothing'}{unchanged}{rest}."


def _memories(count: int) -> str:
    return "1 memory" if count == 1 else f"{count} memories"


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count} files"
