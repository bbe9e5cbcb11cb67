"""Transcripts of Claude Code: ~/.claude/projects/PROJECT/SESSION.jsonl, one event a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trivet.sources.files.parts import Part
from trivet.sources.files.readers.conversations import Turn, joined, json_lines, parts_of_turns

SPEAKERS = {"user": "User", "assistant": "Claude"}
# Marks around text that the program adds to a user's message, such as the output of commands.
_PROGRAM_MARKS = re.compile(
    r"<(?P<end>/?)"
    r"(?P<name>system-reminder|local-command-[a-z]+|command-[a-z]+|bash-[a-z]+|ide_[a-z_]+|task-notification)>"
)
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\[\]\n]*\]")
_SEPARATOR = re.compile(r"[/\\]")
_TITLE = 80


def is_claude_code(first: dict[str, Any]) -> bool:
    return "sessionId" in first or (first.get("type") == "summary" and "leafUuid" in first)


def read_claude_code(name: str, text: str) -> Iterator[Part]:
    events = list(json_lines(text))
    turns = list(joined(turns_in(events)))
    summary = next((str(event["summary"]) for event in events if event.get("type") == "summary"), "")
    project = next((str(event["cwd"]) for event in events if event.get("cwd")), "").rstrip("/\\")
    opening = next((turn.text for turn in turns if turn.speaker == "User"), "")
    tags = tuple(tag for tag in ("claude-code", _SEPARATOR.split(project)[-1][:64]) if tag)
    yield from parts_of_turns(turns, summary or " ".join(opening.split())[:_TITLE], tags)


def turns_in(events: list[dict[str, Any]]) -> Iterator[Turn]:
    """The turns of the user and the agent, in order."""
    for event in events:
        speaker = SPEAKERS.get(str(event.get("type")))
        message = event.get("message")
        if speaker is None or event.get("isMeta") or event.get("isSidechain") or not isinstance(message, dict):
            continue
        if event.get("isCompactSummary"):
            continue  # it repeats what the turns before it say
        spoken = _INTERRUPTED.sub("", _spoken(_text(message.get("content")))).strip()
        if spoken:
            yield Turn(str(event.get("uuid") or message.get("id")), speaker, spoken, event.get("timestamp"))


def _spoken(text: str) -> str:
    """The text without what stands between the program's marks, in one pass; a mark never closed encloses nothing."""
    ends: dict[str, list[re.Match[str]]] = {}
    marks = list(_PROGRAM_MARKS.finditer(text))
    for mark in reversed(marks):
        if mark["end"]:
            ends.setdefault(mark["name"], []).append(mark)
    kept, position = [], 0
    for mark in marks:
        closing = ends.get(mark["name"], [])
        while closing and closing[-1].start() <= mark.start():
            closing.pop()
        if mark["end"] or mark.start() < position or not closing:
            continue
        kept.append(text[position : mark.start()])
        position = closing[-1].end()
    return "".join([*kept, text[position:]])


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = (block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text")
    return "\n\n".join(text for text in texts if isinstance(text, str))
