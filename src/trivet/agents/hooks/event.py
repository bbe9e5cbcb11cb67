"""Hook input and output, the memories shown to each conversation, and failed hooks.

A hook logs its failures for `trivet status` and never reports them to the agent.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from trivet.common.files import private_folder
from trivet.errors import InvalidInput
from trivet.settings import data_folder

_GIVEN_BY_HOOK = ("<hook_context>", "</hook_context>")


class Event(msgspec.Struct, frozen=True):
    """The fields that the moments use; `raw` is the whole object."""

    name: str
    session: str
    folder: str
    prompt: str
    source: str
    raw: Mapping[str, Any]


def event_of(given: bytes) -> Event:
    """Parse a hook's input; Claude Code, Codex and Gemini share field names."""
    try:
        raw = json.loads(given.decode(errors="replace"))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"The hook's input is not JSON: {type(error).__name__}.") from None
    if not isinstance(raw, dict):
        raise InvalidInput("The hook's input is not a JSON object.")
    roots = raw.get("workspace_roots")
    root = roots[0] if isinstance(roots, list) and roots else None
    return Event(
        name=_text(raw.get("hook_event_name")),
        session=_text(raw.get("session_id") or raw.get("conversation_id")),
        folder=_text(raw.get("cwd") or root),
        prompt=_typed(_text(raw.get("prompt"))),
        source=_text(raw.get("source") or raw.get("trigger") or raw.get("reason")),
        raw=raw,
    )


def answer_of(event: Event, text: str, usual_name: str) -> bytes:
    if not text:
        return b""
    name = event.name or usual_name
    if name[:1].islower():  # Cursor
        return msgspec.json.encode({"additional_context": text})
    return msgspec.json.encode(
        {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}
    )


def _typed(prompt: str) -> str:
    """Strip the session-start memories that Gemini CLI puts before the prompt."""
    if not prompt.startswith(_GIVEN_BY_HOOK[0]):
        return prompt
    _, end, typed = prompt.partition(_GIVEN_BY_HOOK[1])
    return typed.lstrip() if end else prompt


def _text(value: object) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""


MAX_CONVERSATIONS = 200
# Ids read per conversation; earlier ones may be shown again.
MAX_SHOWN = 1_000
# A line that marks a compaction: the model no longer sees the ids above it.
COMPACTED = "compacted"


class ShownMemories:
    """The ids shown to a conversation, in a file that processes share."""

    def __init__(self, environment: Mapping[str, str], session: str) -> None:
        self._folder = data_folder(environment) / "hooks" / "seen"
        name = hashlib.blake2b(session.encode(), digest_size=16).hexdigest()
        self._file = self._folder / name if session else None

    def shown(self) -> frozenset[str]:
        """Return the ids in the model's current context."""
        rows = self._rows()
        return frozenset(rows[_last(rows, COMPACTED) + 1 :])

    def lost(self) -> tuple[str, ...]:
        """Return the ids that the last compaction removed, latest first."""
        rows = self._rows()
        end = _last(rows, COMPACTED)
        before = rows[:end] if end >= 0 else rows
        return tuple(dict.fromkeys(reversed(before[_last(before, COMPACTED) + 1 :])))

    def add(self, ids: Iterable[str]) -> None:
        self._append(list(ids))

    def compact(self) -> None:
        """Mark a compaction, once even if called before and after it."""
        rows = self._rows()
        if rows and rows[-1] != COMPACTED:
            self._append([COMPACTED])

    def forget(self) -> None:
        if self._file is not None:
            self._file.unlink(missing_ok=True)

    def _rows(self) -> list[str]:
        if self._file is None:
            return []
        try:
            return self._file.read_text(encoding="ascii", errors="replace").split()[-MAX_SHOWN:]
        except FileNotFoundError:
            return []

    def _append(self, rows: list[str]) -> None:
        if self._file is None or not rows:
            return
        private_folder(self._folder)
        new = not self._file.exists()
        handle = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(handle, "".join(f"{row}\n" for row in rows).encode())
        finally:
            os.close(handle)
        if new:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        files = sorted(self._folder.iterdir(), key=_age)
        for file in files[: max(0, len(files) - MAX_CONVERSATIONS)]:
            file.unlink(missing_ok=True)


def _age(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:  # another hook has just dropped it
        return 0.0


def _last(rows: list[str], mark: str) -> int:
    return len(rows) - 1 - rows[::-1].index(mark) if mark in rows else -1


class Failures(msgspec.Struct, frozen=True):
    """Counts of the latest few hundred failures."""

    count: int
    moments: dict[str, int]
    last: str | None = None
    last_at: str | None = None


def failures() -> Failures:
    folder = data_folder() / "hooks"
    rows = [
        row.split(" ", 2)
        for name in ("failures.log.1", "failures.log")
        for row in _log_rows(folder / name)
    ]
    whole = [row for row in rows if len(row) == 3 and row[0].isdigit()]
    if not whole:
        return Failures(0, {})
    moments = Counter(moment or "?" for _, moment, _ in whole)
    seconds, _, reason = whole[-1]
    return Failures(
        len(whole), dict(moments), reason, datetime.fromtimestamp(int(seconds), UTC).isoformat()
    )


def _log_rows(file: Path) -> list[str]:
    try:
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []
