"""Transcripts of Codex: ~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl, one `{timestamp, type, payload}` a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from trivet.sources.files.parts import Part
from trivet.sources.files.readers.conversations import Turn, joined, json_lines, parts_of_turns

SPEAKERS = {"user": "User", "assistant": "Codex", "user_message": "User", "agent_message": "Codex"}
# Beginnings of messages that the program sends to the model in the user's name.
_BY_PROGRAM = ("<environment_context>", "<user_instructions>", "<turn_aborted>", "# AGENTS.md instructions")
_TITLE = 80


def is_codex(first: dict[str, Any]) -> bool:
    return first.get("type") in ("session_meta", "response_item", "event_msg", "turn_context") and "payload" in first


def read_codex(name: str, text: str) -> Iterator[Part]:
    lines = list(json_lines(text))
    turns = list(joined(turns_in(lines)))
    meta = next((_payload(line) for line in lines if line.get("type") == "session_meta"), {})
    opening = next((turn.text for turn in turns if turn.speaker == "User"), "")
    project = str(meta.get("cwd") or "").rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    tags = tuple(tag for tag in ("codex", project[:64]) if tag)
    yield from parts_of_turns(turns, " ".join(opening.split())[:_TITLE], tags)


def turns_in(lines: list[dict[str, Any]]) -> list[Turn]:
    """The turns of the user and the agent, in order."""
    return _spoken(lines) or _items(lines)


def _spoken(lines: list[dict[str, Any]]) -> list[Turn]:
    """Messages as the user saw them, where the transcript has such events."""
    found = []
    for number, line in enumerate(lines):
        payload = _payload(line)
        if line.get("type") == "event_msg" and payload.get("type") in ("user_message", "agent_message"):
            found.append(Turn(str(number), SPEAKERS[payload["type"]], str(payload.get("message", "")), _time(line)))
    return [turn for turn in found if not turn.text.startswith(_BY_PROGRAM)]


def _items(lines: list[dict[str, Any]]) -> list[Turn]:
    """Messages to and from the model, for transcripts without such events."""
    found = []
    for number, line in enumerate(lines):
        payload = _payload(line)
        if payload.get("type") == "message" and payload.get("role") in ("user", "assistant"):
            content = payload.get("content")
            blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
            text = "\n\n".join(str(block["text"]) for block in blocks if isinstance(block.get("text"), str))
            found.append(Turn(str(number), SPEAKERS[payload["role"]], text, _time(line)))
    return [turn for turn in found if not turn.text.lstrip().startswith(_BY_PROGRAM)]


def _payload(line: dict[str, Any]) -> dict[str, Any]:
    """Early transcripts have no envelope around the payload."""
    payload = line.get("payload", line)
    return payload if isinstance(payload, dict) else {}


def _time(line: dict[str, Any]) -> str | None:
    return str(line["timestamp"]) if line.get("timestamp") else None
