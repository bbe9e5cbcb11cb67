"""The JSON that an agent's program gives a hook, and the JSON it expects back. Most programs agree on both.

Which memories a conversation was shown already, so that no hook shows one twice.

One small file of ids a conversation, for the latest conversations only.

Counts failed hooks for `trivet status`: a hook never reports a failure to the agent, it only logs it.
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

# Around what a hook gave, in a prompt of Gemini CLI.
_GIVEN_BY_HOOK = ("<hook_context>", "</hook_context>")


class Event(msgspec.Struct, frozen=True):
    """The fields that the moments use; `raw` is the whole object that the agent gave."""

    name: str
    session: str
    folder: str
    prompt: str
    source: str
    raw: Mapping[str, Any]


def event_of(given: bytes) -> Event:
    """Claude Code, Codex and Gemini use the same field names; Cursor has some of its own."""
    try:
        raw = json.loads(given.decode(errors="replace"))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"What the agent said is not JSON: {type(error).__name__}.") from None
    if not isinstance(raw, dict):
        raise InvalidInput("What the agent said is not a JSON object.")
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
    """The text that the agent's model is to read, in the shape that its program expects."""
    if not text:
        return b""
    name = event.name or usual_name
    if name[:1].islower():  # Cursor's names
        return msgspec.json.encode({"additional_context": text})
    return msgspec.json.encode(
        {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}
    )


def _typed(prompt: str) -> str:
    """What the user typed. Gemini CLI puts what a hook gave at the session's start before it: our own memories."""
    if not prompt.startswith(_GIVEN_BY_HOOK[0]):
        return prompt
    _, end, typed = prompt.partition(_GIVEN_BY_HOOK[1])
    return typed.lstrip() if end else prompt


def _text(value: object) -> str:
    """JSON may hold half a surrogate pair, which UTF-8 cannot encode: it becomes a question mark."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""


MAX_CONVERSATIONS = 200
# Ids read back of one conversation; beyond that the earliest may be shown again.
MAX_SHOWN = 1_000
# A line that says: here the agent's program shortened the conversation, so its model no longer sees the ids above.
COMPACTED = "compacted"


class ShownMemories:
    """A file, so that it outlives the resident process and hooks without one use it too."""

    def __init__(self, environment: Mapping[str, str], session: str) -> None:
        self._folder = data_folder(environment) / "hooks" / "seen"
        name = hashlib.blake2b(session.encode(), digest_size=16).hexdigest()
        self._file = self._folder / name if session else None

    def shown(self) -> frozenset[str]:
        """Ids that the agent's model sees now."""
        rows = self._rows()
        return frozenset(rows[_last(rows, COMPACTED) + 1 :])

    def lost(self) -> tuple[str, ...]:
        """Ids that the model saw before the conversation was shortened last, the latest first."""
        rows = self._rows()
        end = _last(rows, COMPACTED)
        before = rows[:end] if end >= 0 else rows
        return tuple(dict.fromkeys(reversed(before[_last(before, COMPACTED) + 1 :])))

    def add(self, ids: Iterable[str]) -> None:
        self._append(list(ids))

    def compact(self) -> None:
        """Called before and after one cut, it writes one line."""
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
    except FileNotFoundError:  # dropped by another hook just now
        return 0.0


def _last(rows: list[str], mark: str) -> int:
    return len(rows) - 1 - rows[::-1].index(mark) if mark in rows else -1


class Failures(msgspec.Struct, frozen=True):
    """Counts of the latest few hundred failures; the log drops older ones."""

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
