"""Shared parts of the adapters.

A JSON value is stored as text that people and search can read, a field per line, such as `food:
pizza`, or as JSON if that would lose something.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import msgspec

from trivet.contract.parameters import MAX_CONTENT_BYTES
from trivet.errors import InvalidInput, TrivetError
from trivet.secrets.detect import SecretSpan
from trivet.secrets.guard import redact_text
from trivet.serve.failures import public_message
from trivet.serve.mcp.tools import AgentTool, agent_tools, call
from trivet.trivet import Trivet
from trivet.types import Hit

T = TypeVar("T")

# A fixed pool, because a store keeps a connection for every thread that used it.
_THREADS = ThreadPoolExecutor(8, thread_name_prefix="trivet-adapter")


async def run_in_thread(function: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(_THREADS, function)


_METADATA_FIELDS = (
    "id", "title", "category", "tags", "scope", "source", "created_at", "updated_at", "passage",
    "score", "relevance", "strength", "rank", "why",
)  # fmt: skip


def hit_metadata(hit: Hit) -> dict[str, Any]:
    """Return a hit's non-empty fields (docs/hit.md) as JSON values."""
    values = {
        name: value for name in _METADATA_FIELDS if (value := getattr(hit, name)) not in (None, ())
    }
    shown: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(values))
    return shown


def pieces(text: str, characters: int, secrets: Sequence[SecretSpan] = ()) -> Iterator[str]:
    """Yield pieces, cutting only secrets longer than a piece: a half would not be detected."""
    start = 0
    while start < len(text):
        end = min(start + characters, len(text))
        end = next((span.start for span in secrets if start < span.start < end < span.stop), end)
        yield text[start:end]
        start = end


_PLAIN_KEY = re.compile(r"[\w.-]{1,100}")


def encode(value: Mapping[str, Any]) -> str:
    """Return the text that stores a value.

    Raises:
        InvalidInput: The value is too large or would change in a round trip.
    """
    if (wrong := _not_json(value)) is not None:
        raise InvalidInput(
            f"value: {wrong} cannot be stored. Use only texts, numbers, lists and dicts."
        )
    plain = bool(value) and all(_PLAIN_KEY.fullmatch(key) for key in value)
    text = (
        "\n".join(f"{key}: {_written(one)}" for key, one in value.items())
        if plain
        else _json(value)
    )
    if len(text.encode()) > MAX_CONTENT_BYTES:
        raise InvalidInput(
            f"value: {len(text.encode())} bytes, but a memory holds at most {MAX_CONTENT_BYTES}."
        )
    if _shape(decode(redact_text(text))) != _shape(value):
        raise InvalidInput(
            "value: a secret or <private> mark spans several fields and cannot be encrypted. "
            "Close the mark, or put the secret into its own field."
        )
    return text


def decode(text: str) -> dict[str, Any]:
    """Return the value of a text, or {"content": text} for other texts."""
    if text.startswith("{"):
        found = _read(text)
        return found if isinstance(found, dict) else {"content": text}
    pairs = [line.partition(": ") for line in text.split("\n")]
    if not all(separator and _PLAIN_KEY.fullmatch(key) for key, separator, _ in pairs):
        return {"content": text}
    return {key: _read(written) for key, _, written in pairs}


def _written(value: Any) -> str:
    plain = (
        isinstance(value, str)
        and value == value.strip()
        and "\n" not in value
        and "\0" not in value
    )
    return value if plain and value and not _is_json(value) else _json(value)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _read(text: str) -> Any:
    return json.loads(text) if _is_json(text) else text


def _not_json(value: Any) -> str | None:
    if value is None or isinstance(value, bool | int | str):
        return None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"{value}"
    if isinstance(value, list):
        return next((wrong for one in value if (wrong := _not_json(one))), None)
    if isinstance(value, dict):
        if strange := next((key for key in value if not isinstance(key, str)), None):
            return f"the key {strange!r}"
        return next((wrong for one in value.values() if (wrong := _not_json(one))), None)
    return f"a {type(value).__name__}"


def _shape(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _shape(one) for key, one in value.items()}
    return [_shape(one) for one in value] if isinstance(value, list) else None


# The tools most agents need. Every request to a model pays for the list, so others are opt-in.
DEFAULT_TOOLS = ("memory_store", "memory_recall", "memory_get", "memory_update", "memory_delete")


class ToolError(Exception):
    """A failed tool call, with a message for the model."""


def select_tools(memory: Trivet, names: Sequence[str]) -> list[AgentTool]:
    """Return the named tools in this order; none reveals sensitive contents."""
    categories = () if memory.server else memory.settings.categories  # a server has its own
    tools = agent_tools(categories=categories)
    if unknown := [name for name in names if name not in tools]:
        raise InvalidInput(
            f"tools: unknown tools: {', '.join(unknown)}. Available: {', '.join(tools)}."
        )
    return [tools[name] for name in names]


async def call_tool(memory: Trivet, tool: AgentTool, arguments: Mapping[str, Any]) -> str:
    """Return the tool's answer for the model; raise ToolError if it fails."""
    try:
        return (await run_in_thread(lambda: call(memory, tool, arguments))).text
    except TrivetError as error:
        raise ToolError(public_message(error)) from None


_ESCAPED = re.compile(r"[^\w-]")
_ESCAPE = re.compile(r"\.([0-9a-f]{1,6})\.")


def encode_scope_label(text: str) -> str:
    """Replace characters that a scope cannot contain by code points between dots."""
    return _ESCAPED.sub(lambda match: f".{ord(match[0]):x}.", text)


def decode_scope_label(label: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), label)
