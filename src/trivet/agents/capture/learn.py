"""After a turn of a conversation: what its user said that is worth keeping is proposed, or stored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from trivet.agents.capture.background import in_background
from trivet.agents.capture.rules import Statement, statements
from trivet.agents.capture.transcript import new_turns, transcript_of
from trivet.errors import TrivetError
from trivet.memory.budgets import disk
from trivet.memory.inbox.same import SPEAKER
from trivet.memory.transcript_progress import keep, position_of
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
_first_person = re.compile(r"\b(?:i|i'm|i've|i'd|my|me|mine)\b", re.IGNORECASE)


class Captured(Value, frozen=True, kw_only=True):
    """What a turn gave: ids of proposals and of memories; how much was known, or over the limit; what went wrong."""

    proposed: tuple[str, ...] = ()
    stored: tuple[str, ...] = ()
    known: int = 0
    left_out: int = 0
    problems: tuple[str, ...] = ()


def learn(memory: Trivet, event: Mapping[str, Any]) -> Captured:
    """For an agent's stop hook, with its JSON. What was read once is not read again."""
    settings = memory.settings
    if settings.capture == "off":
        return Captured()
    full = _over_budget(memory)
    if full:
        return Captured(problems=(full,))
    try:
        path = transcript_of(event)
        session = str(event.get("session_id") or path)
        position = position_of(settings.path, session, path)
        new = new_turns(path, position.read)
    except TrivetError as error:
        return Captured(problems=(str(error),))
    found = list(dict.fromkeys(one for message in new.of_user for one in statements(message)))
    captured = take(memory, found, path, project_of(event))
    keep(msgspec.structs.replace(position, read=new.position, project=project_of(event)))
    if settings.capture_llm and settings.background and not memory.server:
        in_background(memory)
    return _with_losses(captured, new.skipped_bytes, new.broken_lines)


def take(memory: Trivet, found: Sequence[Statement], path: Path, project: str) -> Captured:
    """Each statement to where the setting says, until as many as a turn may give are new."""
    proposed: list[str] = []
    stored: list[str] = []
    problems: list[str] = []
    known = 0
    settings = memory.settings
    for number, statement in enumerate(found):
        if len(proposed) + len(stored) >= settings.capture_most_a_turn:
            left = len(found) - number
            return Captured(
                proposed=tuple(proposed), stored=tuple(stored), known=known, left_out=left, problems=tuple(problems)
            )
        try:
            made = memory.inbox_propose(
                worded(statement.content),
                kind=statement.kind,
                reason=statement.reason,
                category=category_of(settings, statement.kind),
                tags=tuple(tag for tag in (TAG, project) if tag),
                source=str(path)[:2000],
            )
            if made.status != "waiting" or made.id is None:
                known += 1
            elif settings.capture == "direct" and made.same_as is None and not made.redacted:
                stored += [one.stored for one in memory.inbox_accept([made.id]) if one.stored]
            else:  # what would replace a memory, or lacks a secret, is for the user to decide
                proposed.append(made.id)
        except TrivetError as error:  # one that is refused costs itself alone
            problems.append(str(error))
    return Captured(proposed=tuple(proposed), stored=tuple(stored), known=known, problems=tuple(problems))


def worded(content: str) -> str:
    """Whose "I" it is must be seen by who reads it later."""
    return f"{SPEAKER}{content}" if _first_person.search(content) else content


def category_of(settings: Settings, kind: ProposalKind) -> str:
    wanted = CATEGORIES[kind]
    return wanted if wanted in settings.categories else settings.categories[0]


def project_of(event: Mapping[str, Any]) -> str:
    """The name of the folder in which the agent works."""
    folder = event.get("cwd")
    return re.split(r"[/\\]", folder.rstrip("/\\"))[-1][:64] if isinstance(folder, str) else ""


def _over_budget(memory: Trivet) -> str | None:
    if memory.server or not memory.settings.disk_budget_mb:
        return None
    room = disk(memory.engine)
    if not room.exceeded:
        return None
    return (
        f"The store has {room.used:g} MB, more than disk_budget_mb = {room.allowed:g}, so nothing is captured. "
        "`trivet tidy --dry-run` shows what could go; or allow more."
    )


def _with_losses(captured: Captured, skipped_bytes: int, broken_lines: int) -> Captured:
    lost = [f"{skipped_bytes:,} bytes of a long transcript were skipped."] if skipped_bytes else []
    lost += [f"{broken_lines} lines of the transcript are no JSON and were skipped."] if broken_lines else []
    return msgspec.structs.replace(captured, problems=(*captured.problems, *lost)) if lost else captured
