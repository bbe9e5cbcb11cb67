"""Transcripts of Gemini CLI: ~/.gemini/tmp/PROJECT/chats/session-*.jsonl, one message or change a line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from trivet.sources.files.readers.conversations import Turn

SPEAKERS = {"user": "User", "gemini": "Gemini"}
# What the program and its hooks put before the user's words.
_BY_PROGRAM = re.compile(r"<(hook_context|session_context)>")


def is_gemini(line: dict[str, Any]) -> bool:
    return "projectHash" in line or "$set" in line or (line.get("type") in SPEAKERS and "content" in line)


def turns_in(lines: list[dict[str, Any]]) -> Iterator[Turn]:
    """The turns of the user and the agent, in order. A message that is written again with more in it counts once."""
    messages = {str(line.get("id")): line for line in lines if line.get("type") in SPEAKERS and "content" in line}
    for id, message in messages.items():
        spoken = _spoken(_text(message["content"]))
        if spoken:
            yield Turn(id, SPEAKERS[message["type"]], spoken, message.get("timestamp"))


def _spoken(text: str) -> str:
    """The text without what stands between the program's marks; a mark never closed takes the rest along."""
    kept, position = [], 0
    while mark := _BY_PROGRAM.search(text, position):
        kept.append(text[position : mark.start()])
        closing = f"</{mark[1]}>"
        end = text.find(closing, mark.end())
        position = len(text) if end < 0 else end + len(closing)
    return "".join([*kept, text[position:]]).strip()


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n\n".join(text for text in texts if isinstance(text, str))
