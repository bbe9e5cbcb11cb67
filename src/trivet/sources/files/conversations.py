"""Conversations as parts, read from transcripts (one JSON object per line) and chat exports.

- Claude Code: ~/.claude/projects/PROJECT/SESSION.jsonl, events.
- Codex: ~/.codex/sessions/YYYY/MM/DD/rollout-*.jsonl, `{timestamp, type, payload}`.
- Gemini CLI: ~/.gemini/tmp/PROJECT/chats/session-*.jsonl, messages or changes.
- ChatGPT and Claude exports: conversations.json.

Parts name the speaker in their text, but not the time (docs/decisions/0009-conversation-turns.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from trivet.errors import InvalidInput
from trivet.sources.files.parts import About, Part, pieces

# Turns such as "Yes." mean nothing alone and would be near-duplicates.
MIN_TURN_CHARACTERS = 12


class Turn(msgspec.Struct, frozen=True):
    """What one speaker said. Its id stays the same as the conversation grows."""

    id: str
    speaker: str
    text: str
    at: str | None = None


def turn_parts(
    turns: Iterable[Turn], title: str, tags: tuple[str, ...], within: str = ""
) -> Iterator[Part]:
    for turn in turns:
        if len(turn.text.strip()) < MIN_TURN_CHARACTERS:
            continue
        fields = {"title": title[:300] or None, "tags": tags} | (
            {"created_at": turn.at} if turn.at else {}
        )
        for number, piece in enumerate(pieces(f"{turn.speaker}: {turn.text.strip()}"), 1):
            place = within + turn.id + (f" ~{number}" if number > 1 else "")
            yield Part(place, piece, fields, None, About(note=title))


def merge_turns(turns: Iterable[Turn]) -> Iterator[Turn]:
    """Join consecutive turns of a speaker, such as pieces between tool calls."""
    current: Turn | None = None
    for turn in turns:
        if current is not None and current.speaker == turn.speaker:
            current = msgspec.structs.replace(current, text=f"{current.text}\n\n{turn.text}")
            continue
        if current is not None:
            yield current
        current = turn
    if current is not None:
        yield current


def json_lines(text: str) -> Iterator[dict[str, Any]]:
    """Yield the objects. A broken last line is one still being written."""
    rows = text.split("\n")
    for number, row in enumerate(rows, 1):
        if not row.strip():
            continue
        try:
            value = msgspec.json.decode(row)
        except (msgspec.DecodeError, RecursionError):
            if number == len(rows):
                return
            raise InvalidInput(
                f"line {number} is not JSON. If the file was cut off there, remove that line"
            ) from None
        if isinstance(value, dict):
            yield value


def first_object(text: str) -> dict[str, Any]:
    try:
        return next(json_lines(text), {})
    except InvalidInput:
        return {}


CLAUDE_SPEAKERS = {"user": "User", "assistant": "Claude"}
# Around text that the program adds, such as command output.
_PROGRAM_MARKS = re.compile(
    r"<(?P<end>/?)"
    r"(?P<name>system-reminder|local-command-[a-z]+|command-[a-z]+|bash-[a-z]+|ide_[a-z_]+|task-notification)>"
)
_INTERRUPTED = re.compile(r"\[Request interrupted by user[^\[\]\n]*\]")
_SEPARATOR = re.compile(r"[/\\]")
MAX_TITLE_CHARACTERS = 80


def is_claude_code(first: dict[str, Any]) -> bool:
    return "sessionId" in first or (first.get("type") == "summary" and "leafUuid" in first)


def read_claude_code(name: str, text: str) -> Iterator[Part]:
    events = list(json_lines(text))
    turns = list(merge_turns(claude_code_turns(events)))
    summary = next(
        (str(event["summary"]) for event in events if event.get("type") == "summary"), ""
    )
    project = next((str(event["cwd"]) for event in events if event.get("cwd")), "").rstrip("/\\")
    opening = next((turn.text for turn in turns if turn.speaker == "User"), "")
    tags = tuple(tag for tag in ("claude-code", _SEPARATOR.split(project)[-1][:64]) if tag)
    yield from turn_parts(turns, summary or " ".join(opening.split())[:MAX_TITLE_CHARACTERS], tags)


def claude_code_turns(events: list[dict[str, Any]]) -> Iterator[Turn]:
    for event in events:
        speaker = CLAUDE_SPEAKERS.get(str(event.get("type")))
        message = event.get("message")
        if (
            speaker is None
            or event.get("isMeta")
            or event.get("isSidechain")
            or not isinstance(message, dict)
        ):
            continue
        if event.get("isCompactSummary"):
            continue  # it repeats earlier turns
        spoken = _INTERRUPTED.sub(
            "", _claude_code_spoken(_claude_code_text(message.get("content")))
        ).strip()
        if spoken:
            yield Turn(
                str(event.get("uuid") or message.get("id")), speaker, spoken, event.get("timestamp")
            )


def _claude_code_spoken(text: str) -> str:
    """Remove the contents of the program's tags. An unclosed tag encloses nothing."""
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


def _claude_code_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    blocks = content if isinstance(content, list) else []
    texts = (
        block.get("text")
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "text"
    )
    return "\n\n".join(text for text in texts if isinstance(text, str))


CODEX_SPEAKERS = {
    "user": "User",
    "assistant": "Codex",
    "user_message": "User",
    "agent_message": "Codex",
}
# Messages that the program sends in the user's name.
_CODEX_PREFIXES = (
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "# AGENTS.md instructions",
)
MAX_CODEX_TITLE_CHARACTERS = 80


def is_codex(first: dict[str, Any]) -> bool:
    return (
        first.get("type") in ("session_meta", "response_item", "event_msg", "turn_context")
        and "payload" in first
    )


def read_codex(name: str, text: str) -> Iterator[Part]:
    lines = list(json_lines(text))
    turns = list(merge_turns(codex_turns(lines)))
    meta = next((_payload(line) for line in lines if line.get("type") == "session_meta"), {})
    opening = next((turn.text for turn in turns if turn.speaker == "User"), "")
    project = str(meta.get("cwd") or "").rstrip("/\\").replace("\\", "/").rpartition("/")[2]
    tags = tuple(tag for tag in ("codex", project[:64]) if tag)
    yield from turn_parts(turns, " ".join(opening.split())[:MAX_CODEX_TITLE_CHARACTERS], tags)


def codex_turns(lines: list[dict[str, Any]]) -> list[Turn]:
    return _codex_spoken(lines) or _items(lines)


def _codex_spoken(lines: list[dict[str, Any]]) -> list[Turn]:
    found = []
    for number, line in enumerate(lines):
        payload = _payload(line)
        if line.get("type") == "event_msg" and payload.get("type") in (
            "user_message",
            "agent_message",
        ):
            found.append(
                Turn(
                    str(number),
                    CODEX_SPEAKERS[payload["type"]],
                    str(payload.get("message", "")),
                    _time(line),
                )
            )
    return [turn for turn in found if not turn.text.startswith(_CODEX_PREFIXES)]


def _items(lines: list[dict[str, Any]]) -> list[Turn]:
    found = []
    for number, line in enumerate(lines):
        payload = _payload(line)
        if payload.get("type") == "message" and payload.get("role") in ("user", "assistant"):
            content = payload.get("content")
            blocks = (
                [block for block in content if isinstance(block, dict)]
                if isinstance(content, list)
                else []
            )
            text = "\n\n".join(
                str(block["text"]) for block in blocks if isinstance(block.get("text"), str)
            )
            found.append(Turn(str(number), CODEX_SPEAKERS[payload["role"]], text, _time(line)))
    return [turn for turn in found if not turn.text.lstrip().startswith(_CODEX_PREFIXES)]


def _payload(line: dict[str, Any]) -> dict[str, Any]:
    payload = line.get("payload", line)
    return payload if isinstance(payload, dict) else {}


def _time(line: dict[str, Any]) -> str | None:
    return str(line["timestamp"]) if line.get("timestamp") else None


GEMINI_SPEAKERS = {"user": "User", "gemini": "Gemini"}
# Put by the program and its hooks before the user's words.
_GEMINI_MARKS = re.compile(r"<(hook_context|session_context)>")


def is_gemini(line: dict[str, Any]) -> bool:
    return (
        "projectHash" in line
        or "$set" in line
        or (line.get("type") in GEMINI_SPEAKERS and "content" in line)
    )


def gemini_turns(lines: list[dict[str, Any]]) -> Iterator[Turn]:
    """Yield the turns. A message written again with more text counts once."""
    messages = {
        str(line.get("id")): line
        for line in lines
        if line.get("type") in GEMINI_SPEAKERS and "content" in line
    }
    for id, message in messages.items():
        spoken = _gemini_spoken(_gemini_text(message["content"]))
        if spoken:
            yield Turn(id, GEMINI_SPEAKERS[message["type"]], spoken, message.get("timestamp"))


def _gemini_spoken(text: str) -> str:
    """Remove the contents of the program's tags. An unclosed tag removes the rest."""
    kept, position = [], 0
    while mark := _GEMINI_MARKS.search(text, position):
        kept.append(text[position : mark.start()])
        closing = f"</{mark[1]}>"
        end = text.find(closing, mark.end())
        position = len(text) if end < 0 else end + len(closing)
    return "".join([*kept, text[position:]]).strip()


def _gemini_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else []
    texts = (part.get("text") for part in parts if isinstance(part, dict))
    return "\n\n".join(text for text in texts if isinstance(text, str))


def conversations_in(text: str) -> list[dict[str, Any]] | None:
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise InvalidInput(
            "it is not JSON. If it is a chat export, unpack or download it again"
        ) from None
    listed = value if isinstance(value, list) else [value]
    found = [
        one
        for one in listed
        if isinstance(one, dict) and ("mapping" in one or "chat_messages" in one)
    ]
    return found if found or value == [] else None


def read_chats(name: str, text: str) -> Iterator[Part]:
    for one in conversations_in(text) or ():
        if "mapping" in one:
            within = str(one.get("conversation_id") or one.get("id") or one.get("create_time"))
            yield from turn_parts(
                merge_turns(_chatgpt(one)), str(one.get("title") or ""), ("chatgpt",), f"{within}/"
            )
        else:
            within = str(one.get("uuid"))
            yield from turn_parts(
                merge_turns(_claude(one)), str(one.get("name") or ""), ("claude",), f"{within}/"
            )


def _chatgpt(conversation: dict[str, Any]) -> Iterator[Turn]:
    mapping = conversation["mapping"]
    for id in reversed(_branch(mapping, conversation.get("current_node"))):
        message = mapping[id].get("message") or {}
        role = (message.get("author") or {}).get("role")
        hidden = (message.get("metadata") or {}).get("is_visually_hidden_from_conversation")
        content = message.get("content") or {}
        if (
            role not in ("user", "assistant")
            or hidden
            or content.get("content_type") not in ("text", "multimodal_text")
        ):
            continue
        spoken = "\n\n".join(
            part for part in content.get("parts") or () if isinstance(part, str)
        ).strip()
        if spoken:
            yield Turn(
                id,
                "User" if role == "user" else "ChatGPT",
                spoken,
                _moment(message.get("create_time")),
            )


def _branch(mapping: dict[str, Any], node: Any) -> list[str]:
    if node not in mapping:  # older exports omit it: take the last leaf
        node = next((id for id in reversed(mapping) if not mapping[id].get("children")), None)
    branch: list[str] = []
    visited: set[str] = set()
    while node in mapping and node not in visited:
        visited.add(node)
        branch.append(node)
        node = mapping[node].get("parent")
    return branch


def _claude(conversation: dict[str, Any]) -> Iterator[Turn]:
    for message in conversation["chat_messages"] or ():
        spoken = str(message.get("text") or "").strip() or _blocks(message.get("content"))
        if spoken:
            speaker = "User" if message.get("sender") == "human" else "Claude"
            yield Turn(str(message.get("uuid")), speaker, spoken, message.get("created_at"))


def _blocks(content: Any) -> str:
    blocks = content if isinstance(content, list) else []
    texts = (
        block.get("text")
        for block in blocks
        if isinstance(block, dict) and block.get("type") == "text"
    )
    return "\n\n".join(text for text in texts if isinstance(text, str)).strip()


def _moment(seconds: Any) -> str | None:
    return (
        datetime.fromtimestamp(seconds, UTC).isoformat()
        if isinstance(seconds, (int, float))
        else None
    )
