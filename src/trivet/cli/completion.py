"""What the shell offers while an id is typed: those that start so, each with its first words."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import typer

from trivet.contract.fields import IdOf
from trivet.errors import TrivetError

if TYPE_CHECKING:
    from trivet import Trivet

# The newest of them are looked through: what one has in mind is seldom older, and the shell waits.
LOOKED_THROUGH = 1_000
OFFERED = 50

Completer = Callable[[typer.Context, str], list[tuple[str, str]]]


def completer(kind: IdOf | None) -> Completer | None:
    """For an argument or an option that holds an id."""
    if kind is None:
        return None

    def offered(context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
        return matching_ids(kind, context, incomplete)

    return offered


def matching_ids(kind: IdOf, context: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    from trivet.cli.session import Session

    path = context.params.get("path") or context.find_root().params.get("path")
    session = Session(path, as_json=False)
    try:
        known = _memories(session.memory) if kind == "memory" else _proposals(session.memory)
        return [one for one in known if one[0].startswith(incomplete.lower())][:OFFERED]
    except TrivetError:  # the shell shows nothing but offers; the command itself will tell what is wrong
        return []
    finally:
        session.close()


def _memories(memory: Trivet) -> Iterator[tuple[str, str]]:
    """In any state: to restore is done to what was forgotten."""
    page = memory.list(limit=LOOKED_THROUGH, state=("active", "superseded", "archived", "deleted"))
    return ((one.id, _words(one.title or one.content)) for one in page.memories)


def _proposals(memory: Trivet) -> Iterator[tuple[str, str]]:
    page = memory.inbox_list(limit=LOOKED_THROUGH)
    return ((one.id, _words(one.content)) for one in page.proposals)


def _words(text: str) -> str:
    from trivet.cli.views.memories import preview

    return preview(text, 60)
