"""Changing what is stored: edit, forget, restore, purge, and the links between memories."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from trivet.cli.command import verb_command
from trivet.cli.options import keyword
from trivet.cli.output import line, one_line
from trivet.cli.session import Session
from trivet.cli.views import memories as views
from trivet.contract import Edit, Forget, LinkRequest, Purge, Restore, UnlinkRequest, given
from trivet.errors import InvalidInput
from trivet.types import Memory

ID = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"
OTHER = "0199c2f9-10aa-7d02-8d1f-5b0c7e3a9f44"


@verb_command(
    "edit",
    more="Only what you name is changed. An empty text clears a title, a source, a time or the tags; --content - reads "
    "the new text from standard input.",
    example=f"trivet edit {ID} --importance 0.9 --tag staging --tag ports",
)
def edit(session: Session, request: Edit) -> None:
    before = session.memory.get(request.id).revision
    memory = session.memory.perform(request)
    said = "Nothing changed, still" if memory.revision == before else "Now"
    session.show(memory, lambda: [line(f"{said} at revision {memory.revision}: ", (memory.id, "cyan"))])
    session.embed_waiting()


@verb_command("forget", example=f"trivet forget {ID}")
def forget(session: Session, request: Forget) -> None:
    memory = session.memory.perform(request)
    hint = f"`trivet restore {memory.id}` brings it back."
    session.show(memory, lambda: [line("Forgotten: ", (memory.id, "cyan"), f". {hint}")])


@verb_command("restore", example=f"trivet restore {ID}\ntrivet restore {ID} --revision 2")
def restore(session: Session, request: Restore) -> None:
    memory = session.memory.perform(request)
    session.show(memory, lambda: [line(f"Restored as revision {memory.revision}: ", (memory.id, "cyan"))])
    session.embed_waiting()


YES = keyword("yes", Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")], False)


@verb_command(
    "purge",
    more="It asks first, unless you say --yes. To delete so that it can be brought back, use forget.",
    example=f"trivet purge {ID} --yes",
    extra=(YES,),
)
def purge(session: Session, request: Purge, yes: bool) -> int:
    memory = session.memory.get(request.id)
    if not yes and not _confirmed(memory):
        typer.echo("Nothing was purged.", err=True)
        return 1
    purged = session.memory.perform(request)
    pending = [line(f"Still to be done: {purged.pending}")] if purged.pending else []
    value = {"id": memory.id, "status": "purged", "pending": purged.pending}
    session.show(value, lambda: [line("Purged: ", (memory.id, "cyan")), *pending])
    return 0


def _confirmed(memory: Memory) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput("purge cannot ask here, since standard input is no terminal. Say --yes to purge.")
    return typer.confirm(f"Remove for good: {one_line(memory.title or memory.content)[:80]!r}?", err=True)


@verb_command(
    "link",
    more="Read it as a sentence. A superseded memory leads recall to its successor; a resolution is shown with the "
    "problem it resolves.",
    example=f"trivet link {OTHER} supersedes {ID}",
)
def link(session: Session, request: LinkRequest) -> None:
    made = session.memory.perform(request)
    session.show(made, lambda: [views.link_line(made)])


@verb_command("unlink", example=f"trivet unlink {OTHER} supersedes {ID}")
def unlink(session: Session, request: UnlinkRequest) -> None:
    session.memory.perform(request)
    session.show({**given(request), "status": "removed"}, lambda: [line("The link is removed.")])
