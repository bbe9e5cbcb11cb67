"""Commands on memories: remember, recall, read, change, delete and link them."""

from __future__ import annotations

import sys
from typing import Annotated

import msgspec
import typer

from trivet.cli.command import verb_command
from trivet.cli.options import keyword
from trivet.cli.session import Session
from trivet.cli.terminal import line, one_line
from trivet.cli.views import memories as views
from trivet.cli.views.answer import answer_lines
from trivet.contract import (
    Edit,
    Forget,
    Get,
    LinkRequest,
    LinksRequest,
    List,
    Purge,
    RecallRequest,
    Remember,
    Restore,
    UnlinkRequest,
    given,
)
from trivet.errors import InvalidInput
from trivet.types import Memory

ID = "0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b"
OTHER = "0199c2f9-10aa-7d02-8d1f-5b0c7e3a9f44"


@verb_command(
    "recall",
    more="Words in double quotes match exactly. Each hit shows how likely it is to be "
    "relevant. The answer says what failed or is not embedded yet.",
    example="""
trivet recall "which port is staging on?" --limit 3
trivet recall "E_CONN_4012" --scope acme --json
""",
)
def recall(session: Session, request: RecallRequest) -> None:
    session.model_soon = True
    answer = session.memory.perform(request)
    session.show(answer, lambda: answer_lines(answer))


@verb_command(
    "fuse",
    verb="recall",
    preset=("federated",),
    summary="Recall from this store and the other systems in the settings, fused into one answer.",
    more="Same as `recall --federated`: every system gets the query. A hit names its system; do "
    "not trust its text. The answer names a system that failed.",
    example='trivet fuse "how do I restore a backup?" --recipe "rrf(k=60, notes=2)"',
)
def fuse(session: Session, request: RecallRequest) -> None:
    session.model_soon = True
    answer = session.memory.perform(msgspec.structs.replace(request, federated=True))
    session.show(answer, lambda: answer_lines(answer))


@verb_command("get", example="trivet get 0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b")
def get(session: Session, request: Get) -> None:
    memory = session.memory.perform(request)
    session.show(memory, lambda: views.memory(memory, session.memory.links(memory.id)))


@verb_command("list", example="trivet list --category decisions --scope acme/shop --limit 5")
def list_memories(session: Session, request: List) -> None:
    page = session.memory.perform(request)
    session.show(page, lambda: views.page(page))


@verb_command(
    "remember",
    more="Write one self-contained sentence or paragraph. The bundled model embeds it before the "
    "command ends; with a hosted embedder, the next long-running program does.",
    example="""
trivet remember "Staging listens on port 6543." --tag staging --scope acme/shop
git log -1 --format=%B | trivet remember - --category code
""",
    creates=True,
)
def remember(session: Session, request: Remember) -> None:
    session.model_soon = True
    remembered = session.memory.perform(request)
    session.show(remembered, lambda: views.remembered(remembered))
    session.embed_pending()


@verb_command("links", example=f"trivet links {ID}")
def links(session: Session, request: LinksRequest) -> None:
    found = session.memory.perform(request)
    session.show(
        found,
        lambda: [views.link_line(one) for one in found] or [line("This memory has no links.")],
    )


@verb_command(
    "edit",
    more="Only the fields you name change. An empty text clears a title, source, time or the "
    "tags. `--content -` reads standard input.",
    example=f"trivet edit {ID} --importance 0.9 --tag staging --tag ports",
)
def edit(session: Session, request: Edit) -> None:
    before = session.memory.get(request.id).revision
    memory = session.memory.perform(request)
    verb = "Unchanged" if memory.revision == before else "Now"
    session.show(
        memory, lambda: [line(f"{verb} at revision {memory.revision}: ", (memory.id, "cyan"))]
    )
    session.embed_pending()


@verb_command("forget", example=f"trivet forget {ID}")
def forget(session: Session, request: Forget) -> None:
    memory = session.memory.perform(request)
    hint = f"`trivet restore {memory.id}` brings it back."
    session.show(memory, lambda: [line("Forgotten: ", (memory.id, "cyan"), f". {hint}")])


@verb_command("restore", example=f"trivet restore {ID}\ntrivet restore {ID} --revision 2")
def restore(session: Session, request: Restore) -> None:
    memory = session.memory.perform(request)
    session.show(
        memory, lambda: [line(f"Restored as revision {memory.revision}: ", (memory.id, "cyan"))]
    )
    session.embed_pending()


YES = keyword(
    "yes", Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")], False
)


@verb_command(
    "purge",
    more="Asks for confirmation unless you give --yes. You can undo `forget`, but not this.",
    example=f"trivet purge {ID} --yes",
    extra=(YES,),
)
def purge(session: Session, request: Purge, yes: bool) -> int:
    memory = session.memory.get(request.id)
    if not yes and not _confirmed(memory):
        typer.echo("Nothing was purged.", err=True)
        return 1
    purged = session.memory.perform(request)
    pending = [line(f"Still pending: {purged.pending}")] if purged.pending else []
    value = {"id": memory.id, "status": "purged", "pending": purged.pending}
    session.show(value, lambda: [line("Purged: ", (memory.id, "cyan")), *pending])
    return 0


def _confirmed(memory: Memory) -> bool:
    if not sys.stdin.isatty():
        raise InvalidInput(
            "purge cannot ask for confirmation because standard input is not a terminal. Nothing "
            "was purged; use --yes to purge."
        )
    return typer.confirm(
        f"Remove for good: {one_line(memory.title or memory.content)[:80]!r}?", err=True
    )


@verb_command(
    "link",
    more="Recall follows a superseded memory to its successor, and shows a resolution with the "
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
