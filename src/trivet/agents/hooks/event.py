"""The JSON that an agent's program gives a hook, and the JSON it expects back. Most programs agree on both."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgspec

from trivet.errors import InvalidInput

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
    return msgspec.json.encode({"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}})


def _typed(prompt: str) -> str:
    """What the user typed. Gemini CLI puts what a hook gave at the session's start before it: our own memories."""
    if not prompt.startswith(_GIVEN_BY_HOOK[0]):
        return prompt
    _, end, typed = prompt.partition(_GIVEN_BY_HOOK[1])
    return typed.lstrip() if end else prompt


def _text(value: object) -> str:
    """JSON may hold half a surrogate pair, which UTF-8 cannot encode: it becomes a question mark."""
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""
