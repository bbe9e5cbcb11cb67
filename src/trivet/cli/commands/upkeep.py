"""Keeping the store in order, and seeing how it is configured."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from trivet.cli.command import command
from trivet.cli.failure import TROUBLED_EMBEDDER, TROUBLED_STORE
from trivet.cli.output import line, write_json, write_text
from trivet.cli.progress import LateProgress
from trivet.cli.session import Session
from trivet.cli.views import memories as views


@command(
    "doctor",
    "Check the store, its indexes, the embedder and the other systems; each problem comes with its remedy.",
    more="It reads every page and every row of the store, some seconds for 100,000 memories; --quick does not. The "
    "exit status is 5 if there is a problem.",
    example="trivet doctor\ntrivet doctor --quick",
)
def doctor(
    session: Session,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out reading every row.")] = False,
) -> int:
    findings = session.memory.doctor(quick=quick or None)
    session.show(findings, lambda: views.findings(findings))
    return 0 if all(finding.ok for finding in findings) else TROUBLED_STORE


@command(
    "reindex",
    "Rebuild what is derived from the memories: the lexical index, the vectors, the concept graph, or all three.",
    more="No memory is changed, and recalls go on meanwhile. If the setting embedder names another model than the one "
    "that made the store's vectors, --vectors moves the store to it.",
    example="trivet reindex\ntrivet reindex --lexical\ntrivet reindex --graph",
)
def reindex(
    session: Session,
    lexical: Annotated[bool, typer.Option("--lexical", help="Only the lexical index.")] = False,
    vectors: Annotated[bool, typer.Option("--vectors", help="Only the vectors.")] = False,
    graph: Annotated[bool, typer.Option("--graph", help="Only the concept graph.")] = False,
) -> None:
    chosen = {"lexical": lexical, "vectors": vectors, "graph": graph}
    if not any(chosen.values()):
        chosen = dict.fromkeys(chosen, True)
    with LateProgress("embedding", lambda done: done + session.memory.stats().not_embedded) as progress:
        embedded = session.memory.reindex(**chosen, progress=progress)
    done = ["the lexical index"] if chosen["lexical"] else []
    done += [f"the vectors ({embedded} memories embedded)"] if chosen["vectors"] else []
    done += [f"the concept graph ({session.memory.stats().concepts} concepts)"] if chosen["graph"] else []
    session.show({**chosen, "embedded": embedded}, lambda: [line(f"Rebuilt {_listed(done)}.")])


def _listed(parts: list[str]) -> str:
    return " and ".join(part for part in (", ".join(parts[:-1]), parts[-1]) if part)


@command(
    "embed",
    "Embed everything that waits, now, also what failed before.",
    more="A hosted embedder's work is left to a long-running process such as `trivet mcp`; without one, run this.",
    example="trivet embed",
)
def embed(session: Session) -> int:
    with LateProgress("embedding", lambda done: done + session.memory.stats().not_embedded) as progress:
        embedded = session.memory.embed(progress=progress)
    counts = session.memory.stats()
    value = {"embedded": embedded, "waiting": counts.not_embedded, "error": counts.last_error}
    waiting = f" {counts.not_embedded} wait." if counts.not_embedded else ""
    trouble = f" Last error: {counts.last_error}" if counts.last_error else ""
    session.show(value, lambda: [line(f"Embedded {embedded} memories.{waiting}{trouble}")])
    return TROUBLED_EMBEDDER if counts.last_error else 0


@command(
    "config",
    "Show every setting, its value and where it comes from.",
    more="An environment variable wins over the configuration file, which wins over the default. `trivet config path` "
    "prints where that file is, or would be.",
    example="trivet config\ntrivet config path",
)
def config(
    session: Session,
    what: Annotated[Literal["show", "path"], typer.Argument(help="What to show.")] = "show",
) -> None:
    from trivet.cli.configuration import config_file, settings_in_force

    file = config_file()
    if what == "path":
        write_json({"path": str(file)}) if session.as_json else write_text(f"{file}\n")
        return
    settings = settings_in_force(session.path)
    session.show({"path": str(file), "settings": settings}, lambda: views.configuration(file, settings))
