"""Statements worth keeping go to the inbox, or straight into the store where the setting `capture` is direct."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import PurePath

from trivet.agents.capture.rules import Statement
from trivet.errors import TrivetError
from trivet.memory.changes.statement import SPEAKER
from trivet.settings import Settings
from trivet.trivet import Trivet
from trivet.types import ProposalKind, Value

CATEGORIES: Mapping[ProposalKind, str] = {
    "asked": "facts",
    "decision": "decisions",
    "preference": "preferences",
    "correction": "facts",
    "workaround": "problems",
    "told": "facts",
}
TAG = "captured"
LONGEST_SOURCE = 2000
_first_person = re.compile(r"\b(?:i|i'm|i've|i'd|my|me|mine)\b", re.IGNORECASE)


class Captured(Value, frozen=True, kw_only=True):
    """What a turn gave: ids of proposals and of memories; how many were known or over the limit; what went wrong."""

    proposed: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    known: int = 0
    left_out: int = 0
    problems: tuple[str, ...] = ()


def propose_all(memory: Trivet, statements: Sequence[Statement], path: PurePath, project: str) -> Captured:
    """Proposes or stores each statement, until as many are new as the setting allows for a turn."""
    proposed: list[str] = []
    stored: list[str] = []
    problems: list[str] = []
    known = left_out = 0
    settings = memory.settings
    for number, statement in enumerate(statements):
        if len(proposed) + len(stored) >= settings.capture_most_a_turn:
            left_out = len(statements) - number
            break
        try:
            made = memory.inbox_propose(
                _with_speaker(statement.content),
                kind=statement.kind,
                reason=statement.reason,
                category=_category(settings, statement.kind),
                tags=tuple(tag for tag in (TAG, project) if tag),
                source=str(path)[:LONGEST_SOURCE],
            )
            if made.status != "waiting" or made.id is None:
                known += 1
            elif settings.capture == "direct" and made.same_as is None and not made.redacted:
                stored += [one.stored for one in memory.inbox_accept([made.id]) if one.stored]
            else:  # it would replace a memory, or a secret was taken out of it: the user decides
                proposed.append(made.id)
        except TrivetError as error:  # a refused statement does not stop the others
            problems.append(str(error))
    return Captured(
        proposed=tuple(proposed), stored=tuple(stored), known=known, left_out=left_out, problems=tuple(problems)
    )


def _with_speaker(content: str) -> str:
    """A later reader must know whose "I" it is."""
    return f"{SPEAKER}{content}" if _first_person.search(content) else content


def _category(settings: Settings, kind: ProposalKind) -> str:
    wanted = CATEGORIES[kind]
    return wanted if wanted in settings.categories else settings.categories[0]
