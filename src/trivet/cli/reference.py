"""The reference of the command line, made from its own help: `python -m trivet.cli.reference > docs/cli.md`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from trivet.cli.app import root_command
from trivet.cli.terminal import INTERRUPTED, STATUSES, STOPPED
from trivet.errors import TrivetError

WIDTH = 100

OPENING = """# The command line

This page is made from the commands' own help by `python -m trivet.cli.reference > docs/cli.md`; a test keeps it true.

Every command takes `--path` and `--json`, before or after its name; those of `trivet lab` and, but for `check`, of
`trivet code` use no store of yours and take `--json` alone. Standard output carries the answer and nothing else;
progress, warnings and errors go to standard error. An answer for people is coloured and wrapped on a terminal and
plain, one row a line, in a pipe. Characters in a memory that would act on a terminal are shown as their codes.

With `--json` the answer is one JSON value in UTF-8, and an error is `{"error": {"kind": ..., "message": ...}}` on
standard error. `trivet recall --json` gives `query`, `hits`, `health`, `took_ms`, `stages_ms`, `recipe`, `considered`
and `truncated`; a hit has the fields of its memory and those of [docs/hit.md](hit.md), as on every other surface.

A command that only looks at a store, or changes what it holds, never makes one: if there is none at the path that you
named, it is an error that names the nearest one. `remember`, `ingest`, `import`, `inbox propose` and `user add` do.

`-` in the place of a text or a file reads standard input. An id may be given by its first characters, four or more, as
long as no other id starts so; if several do, the error lists them. `trivet --install-completion` sets up completion for
your shell, of ids too.
"""


def reference() -> str:
    root = root_command()
    context = typer.Context(root, info_name="trivet", terminal_width=WIDTH)
    parts = [OPENING, _statuses(), "## trivet\n", _block(root.get_help(context))]
    parts.extend(_sections(root, context))
    return "\n".join(parts)


def _sections(root: Any, context: typer.Context) -> Iterator[str]:
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        inner = typer.Context(command, info_name=name, parent=context, terminal_width=WIDTH)
        yield f"## {inner.command_path}\n"
        yield _block(command.get_help(inner))
        if hasattr(command, "list_commands"):
            yield from _sections(command, inner)


def _block(text: str) -> str:
    rows = "\n".join(row.rstrip() for row in text.splitlines())
    return f"```text\n{rows}\n```\n"


def _statuses() -> str:
    rows = ["## Exit statuses\n", "| status | meaning |", "|---|---|"]
    rows.append("| 0 | It worked. A recall that finds nothing has worked too. |")
    rows.append(
        f"| {STOPPED} | You said no when asked, or a package that the command needs is not installed. |"
    )
    rows.extend(f"| {status} | {_meaning(kind)} |" for kind, status in STATUSES.items())
    rows.append(f"| {INTERRUPTED} | Interrupted. |")
    rows.append("\n`trivet lab gate` and `trivet code` have statuses of their own: see there.")
    return "\n".join(rows) + "\n"


def _meaning(kind: type[TrivetError]) -> str:
    return f"`{kind.__name__}`: {kind.__doc__}"


if __name__ == "__main__":
    print(reference(), end="")
