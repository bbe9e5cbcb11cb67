"""Capture after a turn: rules run at once, the language model in a background thread."""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

import msgspec

from trivet.agents.capture.proposals import Captured, curate, propose_all, read_waiting
from trivet.agents.capture.rules import statements
from trivet.agents.capture.transcript import new_turns, transcript_of
from trivet.errors import TrivetError
from trivet.memory.admin.maintenance import disk
from trivet.memory.transcript_progress import (
    forget_problem,
    note_problem,
    progress_of,
    save_progress,
)
from trivet.trivet import Trivet

MAX_PROJECT_CHARACTERS = 64
_SEPARATOR = re.compile(r"[/\\]")


def learn(memory: Trivet, event: Mapping[str, Any]) -> Captured:
    """Learn from what the transcript gained since; `event` is a stop hook's JSON."""
    settings = memory.settings
    if settings.capture == "off":
        return Captured()
    full = _over_budget(memory)
    if full:
        return Captured(problems=(full,))
    if isinstance(given := event.get("user_messages"), list):
        messages = [message for message in given if isinstance(message, str)]
        return _learn_from_messages(memory, event, messages)
    try:
        path = transcript_of(event)
        session = str(event.get("session_id") or path)
        progress = progress_of(settings.path, session, path)
        new = new_turns(path, progress.read_by_rules)
    except TrivetError as error:
        return Captured(problems=(str(error),))
    project = _project(event)
    found = list(dict.fromkeys(one for message in new.user_texts for one in statements(message)))
    captured = propose_all(memory, found, path, project)
    save_progress(msgspec.structs.replace(progress, read_by_rules=new.position, project=project))
    if settings.capture_llm and settings.background and not memory.server:
        start_in_background(memory)
    return _with_losses(captured, new.skipped_bytes, new.broken_lines)


def _learn_from_messages(memory: Trivet, event: Mapping[str, Any], messages: list[str]) -> Captured:
    """Learn from a plugin's messages, for agents without a transcript."""
    found = list(dict.fromkeys(one for message in messages for one in statements(message)))
    conversation = PurePath("conversation") / str(event.get("session_id") or "unknown")
    return propose_all(memory, found, conversation, _project(event))


def _project(event: Mapping[str, Any]) -> str:
    folder = event.get("cwd")
    return (
        _SEPARATOR.split(folder.rstrip("/\\"))[-1][:MAX_PROJECT_CHARACTERS]
        if isinstance(folder, str)
        else ""
    )


def _over_budget(memory: Trivet) -> str | None:
    if memory.server or not memory.settings.disk_budget_mb:
        return None
    budget = disk(memory.engine)
    if not budget.exceeded:
        return None
    return (
        f"The store has {budget.used:g} MB, more than disk_budget_mb = {budget.allowed:g}, so "
        "capture is paused. `trivet tidy --dry-run` shows what to remove, or raise the limit."
    )


def _with_losses(captured: Captured, skipped_bytes: int, broken_lines: int) -> Captured:
    lost = [f"{skipped_bytes:,} bytes of a long transcript were skipped."] if skipped_bytes else []
    lost += (
        [f"{broken_lines} lines of the transcript are not JSON and were skipped."]
        if broken_lines
        else []
    )
    return (
        msgspec.structs.replace(captured, problems=(*captured.problems, *lost))
        if lost
        else captured
    )


_running = threading.Lock()


def start_in_background(memory: Trivet) -> threading.Thread | None:
    """Start a thread that reads waiting conversations and curates, unless one runs."""
    if not _running.acquire(blocking=False):
        return None
    thread = threading.Thread(
        target=_read_and_curate, args=(memory,), name="trivet-capture", daemon=True
    )
    thread.start()
    return thread


def _read_and_curate(memory: Trivet) -> None:
    try:
        problems = (*read_waiting(memory).problems, *curate(memory).problems)
        if problems:
            note_problem(problems[-1])
        else:
            forget_problem()
    except TrivetError as error:  # `doctor` shows it; the store may be closed by now
        note_problem(str(error))
    finally:
        _running.release()
