"""What an agent says at a hook, and how it wants to be answered. Agents agree on the most of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from trivet.errors import InvalidInput


class Event(msgspec.Struct, frozen=True):
    """`said` is all that the agent gave, for moments that need more than the usual."""

    name: str
    session: str
    folder: str
    prompt: str
    source: str
    said: Mapping[str, Any]


def event_of(given: bytes) -> Event:
    """Claude Code, Codex and Gemini say it in the same words; Cursor has some of its own."""
    try:
        said = json.loads(given.decode(errors="replace"))
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"What the agent said is not JSON: {type(error).__name__}.") from None
    if not isinstance(said, dict):
        raise InvalidInput("What the agent said is not a JSON object.")
    roots = said.get("workspace_roots")
    root = roots[0] if isinstance(roots, list) and roots else None
    return Event(
        name=_text(said.get("hook_event_name")),
        session=_text(said.get("session_id") or said.get("conversation_id")),
        folder=_text(said.get("cwd") or root),
        prompt=_text(said.get("prompt")),
        source=_text(said.get("source") or said.get("trigger") or said.get("reason")),
        said=said,
    )


def answer_of(event: Event, text: str, usual_name: str) -> bytes:
    """Text that is to come before the agent's model, in the shape its program takes it from."""
    if not text:
        return b""
    name = event.name or usual_name
    if name[:1].islower():  # Cursor's names
        return msgspec.json.encode({"additional_context": text})
    return msgspec.json.encode({"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}})


def _text(value: object) -> str:
    """Half a surrogate pair, which JSON may hold and nothing else can carry, becomes a question mark."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""
