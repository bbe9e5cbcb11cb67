"""Commands that maintain a store and show its settings."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
import typer

from trivet.cli.command import command
from trivet.cli.session import Session
from trivet.cli.terminal import (
    EMBEDDER_ERROR,
    STORE_ERROR,
    DelayedProgress,
    Line,
    line,
    write_json,
    write_text,
)
from trivet.cli.views import memories as views
from trivet.contract import json_schema
from trivet.errors import InvalidInput
from trivet.settings import Settings, config_path, load_settings
from trivet.types import Tidy, TidyKind


@command(
    "doctor",
    "Check the store, its indexes, the embedder and the other systems; every problem names its "
    "remedy.",
    more="Reads every page and row of the store, some seconds for 100,000 memories. If there is "
    "a problem, the exit status is 5.",
    example="trivet doctor\ntrivet doctor --quick",
)
def doctor(
    session: Session,
    quick: Annotated[bool, typer.Option("--quick", help="Do not read every row.")] = False,
) -> int:
    findings = session.memory.doctor(quick=quick or None)
    session.show(findings, lambda: views.findings(findings))
    return 0 if all(finding.ok for finding in findings) else STORE_ERROR


@command(
    "reindex",
    "Rebuild what is derived from the memories: lexical index, vectors, concept graph, or all "
    "three.",
    more="Memories do not change, and recalls work meanwhile. --vectors moves the store to the "
    "model in the setting embedder, if it has another.",
    example="trivet reindex\ntrivet reindex --lexical\ntrivet reindex --graph",
)
def reindex(
    session: Session,
    lexical: Annotated[
        bool, typer.Option("--lexical", help="Rebuild only the lexical index.")
    ] = False,
    vectors: Annotated[bool, typer.Option("--vectors", help="Rebuild only the vectors.")] = False,
    graph: Annotated[bool, typer.Option("--graph", help="Rebuild only the concept graph.")] = False,
) -> None:
    chosen = {"lexical": lexical, "vectors": vectors, "graph": graph}
    if not any(chosen.values()):
        chosen = dict.fromkeys(chosen, True)
    with DelayedProgress(
        "embedding", lambda done: done + session.memory.stats().not_embedded
    ) as progress:
        embedded = session.memory.reindex(**chosen, progress=progress)
    done = ["the lexical index"] if chosen["lexical"] else []
    done += [f"the vectors ({embedded} memories embedded)"] if chosen["vectors"] else []
    done += (
        [f"the concept graph ({session.memory.stats().concepts} concepts)"]
        if chosen["graph"]
        else []
    )
    session.show({**chosen, "embedded": embedded}, lambda: [line(f"Rebuilt {_listed(done)}.")])


def _listed(parts: list[str]) -> str:
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)


@command(
    "embed",
    "Embed all waiting memories now, including those that failed before.",
    more="Work for a hosted embedder waits for a long-running process such as `trivet mcp`; "
    "without one, run this command.",
    example="trivet embed",
)
def embed(session: Session) -> int:
    with DelayedProgress(
        "embedding", lambda done: done + session.memory.stats().not_embedded
    ) as progress:
        embedded = session.memory.embed(progress=progress)
    counts = session.memory.stats()
    value = {"embedded": embedded, "waiting": counts.not_embedded, "error": counts.last_error}
    waiting = f" {counts.not_embedded} wait." if counts.not_embedded else ""
    trouble = f" Last error: {counts.last_error}" if counts.last_error else ""
    session.show(value, lambda: [line(f"Embedded {embedded} memories.{waiting}{trouble}")])
    return EMBEDDER_ERROR if counts.last_error else 0


@command(
    "config",
    "Show every setting with its value and origin.",
    more="An environment variable overrides the configuration file, which overrides the default.",
    example="trivet config\ntrivet config path",
)
def config(
    session: Session,
    what: Annotated[
        Literal["show", "path"],
        typer.Argument(
            metavar="WHAT",
            help="The settings (show), or the file's path, even if there is no file (path).",
        ),
    ] = "show",
) -> None:

    file = config_file()
    if what == "path":
        write_json({"path": str(file)}) if session.as_json else write_text(f"{file}\n")
        return
    settings = settings_in_force(session.path)
    session.show({"path": str(file), "settings": settings}, lambda: settings_lines(file, settings))


def settings_lines(file: Path, settings: Sequence[Setting]) -> Iterator[Line]:
    yield line((f"Configuration file: {file}{'' if file.exists() else ' (not found)'}", "dim"))
    for setting in settings:
        value = ", ".join(setting.value) if isinstance(setting.value, tuple) else str(setting.value)
        yield line((setting.name, "bold"), f" = {value}  ", (f"({setting.origin})", "cyan"))
        yield line((setting.description, "dim"), indent=4)


Origin = Literal["option", "environment", "file", "default"]


class Setting(msgspec.Struct, frozen=True):
    name: str
    value: Any
    origin: Origin
    description: str


def config_file() -> Path:
    return config_path()


def settings_in_force(path: str | None) -> tuple[Setting, ...]:
    settings = load_settings(path=path)
    in_file = _names_in_file()
    properties = json_schema(Settings)["properties"]
    return tuple(
        Setting(
            name=name,
            value=settings.shown[name],
            origin="option" if name == "path" and path else _origin(name, in_file),
            description=properties[name].get("description", ""),
        )
        for name in Settings.__struct_fields__
    )


def _origin(name: str, in_file: frozenset[str]) -> Origin:
    if f"TRIVET_{name.upper()}" in os.environ:
        return "environment"
    return "file" if name in in_file else "default"


def _names_in_file() -> frozenset[str]:
    file = config_file()
    return (
        frozenset(tomllib.loads(file.read_text(encoding="utf-8"))) if file.exists() else frozenset()
    )


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
    "Find duplicates and memories that are expired, unused, unhelpful or without their file.",
    more="Shows what it finds; --yes forgets it. Nothing is purged. Doubtful memories, such as "
    "those with links or in a file, stay. Memories that were never recalled or never useful are "
    "forgotten only with --kind unused or --kind unhelpful.",
    example="trivet tidy --dry-run\ntrivet tidy --yes --kind duplicate\ntrivet tidy --undo",
)
def tidy(
    session: Session,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show the findings, as without --yes.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Forget what was found.")] = False,
    kinds: Annotated[
        list[str] | None,
        typer.Option(
            "--kind",
            metavar="duplicate|expired|unused|unhelpful|orphan",
            help="Only this kind. Repeatable.",
        ),
    ] = None,
    unused_days: Annotated[
        int,
        typer.Option(
            "--unused-days",
            min=1,
            metavar="NUMBER",
            help="Count a memory as unused after this many days without a recall.",
        ),
    ] = 180,
    undo: Annotated[bool, typer.Option("--undo", help="Restore what the last run forgot.")] = False,
) -> None:
    if yes and (dry_run or undo):
        raise InvalidInput(
            "--yes cannot be combined with --dry-run or --undo. Nothing was changed; give only one."
        )
    done = session.memory.tidy(
        kinds=_kinds(kinds or []), dry_run=not yes, unused_days=unused_days, undo=undo
    )
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
        yield line(
            f"{would} would be forgotten; use --yes to forget them."
            if would
            else "Nothing to forget."
        )
    elif done.findings or done.forgotten:
        yield line(f"Forgot {done.forgotten}. `trivet tidy --undo` restores them.")
