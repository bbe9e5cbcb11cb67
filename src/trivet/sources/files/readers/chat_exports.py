"""The data exports of ChatGPT and Claude: conversations.json, a list of conversations."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import msgspec

from trivet.errors import InvalidInput
from trivet.sources.files.parts import Part
from trivet.sources.files.readers.conversations import Turn, joined, parts_of_turns


def conversations_in(text: str) -> list[dict[str, Any]] | None:
    """The conversations in the JSON; None if it is something else."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError):
        raise InvalidInput("it is not JSON. If it is an export of chats, unpack or download it again") from None
    listed = value if isinstance(value, list) else [value]
    found = [one for one in listed if isinstance(one, dict) and ("mapping" in one or "chat_messages" in one)]
    return found if found or value == [] else None


def read_chats(name: str, text: str) -> Iterator[Part]:
    for one in conversations_in(text) or ():
        if "mapping" in one:
            within = str(one.get("conversation_id") or one.get("id") or one.get("create_time"))
            yield from parts_of_turns(joined(_chatgpt(one)), str(one.get("title") or ""), ("chatgpt",), f"{within}/")
        else:
            within = str(one.get("uuid"))
            yield from parts_of_turns(joined(_claude(one)), str(one.get("name") or ""), ("claude",), f"{within}/")


def _chatgpt(conversation: dict[str, Any]) -> Iterator[Turn]:
    """ChatGPT stores a tree of messages: the branch to the current node is the conversation as the user left it."""
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
        spoken = "\n\n".join(part for part in content.get("parts") or () if isinstance(part, str)).strip()
        if spoken:
            yield Turn(id, "User" if role == "user" else "ChatGPT", spoken, _moment(message.get("create_time")))


def _branch(mapping: dict[str, Any], node: Any) -> list[str]:
    if node not in mapping:  # older exports do not name the current node: take the last leaf
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
    texts = (block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text")
    return "\n\n".join(text for text in texts if isinstance(text, str)).strip()


def _moment(seconds: Any) -> str | None:
    return datetime.fromtimestamp(seconds, UTC).isoformat() if isinstance(seconds, (int, float)) else None
