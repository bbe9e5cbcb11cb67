"""Storing a memory."""

from __future__ import annotations

from trivet.cli.command import verb_command
from trivet.cli.session import Session
from trivet.cli.views import memories as views
from trivet.contract import Remember


@verb_command(
    "remember",
    more="Write one self-contained sentence or paragraph: it will be read alone. With the bundled model the memory is "
    "embedded before the command ends; with a hosted embedder the work waits for the next program that runs longer.",
    example="""
trivet remember "Staging listens on port 6543." --tag staging --scope acme/shop
git log -1 --format=%B | trivet remember - --category code
""",
)
def remember(session: Session, request: Remember) -> None:
    remembered = session.memory.perform(request)
    session.show(remembered, lambda: views.remembered(remembered))
    session.embed_waiting()
