"""Finding memories: by a question, by id, by browsing."""

from __future__ import annotations

import msgspec

from trivet.cli.command import verb_command
from trivet.cli.session import Session
from trivet.cli.views import memories as views
from trivet.cli.views.answer import as_lines
from trivet.contract import Get, List, RecallRequest, Remember


@verb_command(
    "recall",
    more="Put words in double quotes to have them matched exactly. Each hit shows its score beside the other "
    "candidates, and how likely it is to be relevant at all. The answer says if a part of the machinery did not work, "
    "or if memories are not embedded yet. Finding nothing is no error.",
    example="""
trivet recall "which port is staging on?" --limit 3
trivet recall "E_CONN_4012" --scope acme --json
""",
)
def recall(session: Session, request: RecallRequest) -> None:
    session.model_soon = True
    answer = session.memory.perform(request)
    session.show(answer, lambda: as_lines(answer))


@verb_command(
    "fuse",
    verb="recall",
    settled=("federated",),
    summary="Recall together with the other systems that the settings declare, fused into one answer.",
    more="The same as `recall --federated`. The query goes to each of them. A hit that is no memory names the systems "
    "that found it; what a system says is not to be trusted. One that fails costs its own hits and is told of.",
    example="""
trivet fuse "how do I restore a backup?"
trivet fuse "E_CONN_4012" --recipe "rrf(k=60, notes=2)" --json
""",
)
def fuse(session: Session, request: RecallRequest) -> None:
    session.model_soon = True
    answer = session.memory.perform(msgspec.structs.replace(request, federated=True))
    session.show(answer, lambda: as_lines(answer))


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
    more="Write one self-contained sentence or paragraph: it will be read alone. With the bundled model the memory is "
    "embedded before the command ends; with a hosted embedder the work waits for the next program that runs longer.",
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
    session.embed_waiting()
