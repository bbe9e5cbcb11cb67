"""Frameworks with an event loop: the store is asked in threads, so that no call holds up the loop.

What a framework's document carries beside its text: plain values, so that it can be written as JSON.

Texts that are too large for one memory, cut into several.

Values of JSON as the content of a memory: a text that people and search can read, and that gives the value back.

A line a field, such as `food: pizza with olives`. What that could not give back exactly stands as JSON: a number or a
list in its line, a value with unusual keys as a whole.

The memory tools for a framework's agent: those of `trivet mcp`, called in this process instead of over MCP.
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

# A fixed set of threads, because a store keeps a connection for each thread it ever saw.
_THREADS = ThreadPoolExecutor(8, thread_name_prefix="trivet-adapter")


async def run_in_thread(function: Callable[[], T]) -> T:
    return await asyncio.get_running_loop().run_in_executor(_THREADS, function)


_METADATA_FIELDS = (
    "id", "title", "category", "tags", "scope", "source", "created_at", "updated_at", "passage", "score", "relevance",
    "strength", "rank", "why",
)  # fmt: skip


def hit_metadata(hit: Hit) -> dict[str, Any]:
    """The fields of a hit by their own names (docs/hit.md); those that are empty are left out."""
    values = {
        name: value for name in _METADATA_FIELDS if (value := getattr(hit, name)) not in (None, ())
    }
    shown: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(values))
    return shown


def pieces(text: str, characters: int, secrets: Sequence[SecretSpan] = ()) -> Iterator[str]:
    """Up to so many characters each, cut where no secret stands: half of one would not be found and encrypted."""
    start = 0
    while start < len(text):
        end = min(start + characters, len(text))
        end = next((span.start for span in secrets if start < span.start < end < span.stop), end)
        yield text[start:end]
        start = end


_PLAIN_KEY = re.compile(r"[\w.-]{1,100}")


def encode(value: Mapping[str, Any]) -> str:
    """The text of a value. One that would come back changed, or not at all, is refused."""
    if (wrong := _not_json(value)) is not None:
        raise InvalidInput(
            f"value: {wrong} would not come back as it was. Give texts, numbers, lists and dicts alone."
        )
    plain = bool(value) and all(_PLAIN_KEY.fullmatch(key) for key in value)
    text = (
        "\n".join(f"{key}: {_written(one)}" for key, one in value.items())
        if plain
        else _json(value)
    )
    if len(text.encode()) > MAX_CONTENT_BYTES:
        raise InvalidInput(
            f"value: it has {len(text.encode())} bytes, and a memory holds up to {MAX_CONTENT_BYTES}."
        )
    if _shape(decode(redact_text(text))) != _shape(value):
        raise InvalidInput(
            "value: what looks like a secret, or is marked <private>, reaches from one field into the next, and cannot "
            "be encrypted by itself. Close the mark, or keep the secret in a field of its own."
        )
    return text


def decode(text: str) -> dict[str, Any]:
    """The value of a text. One that somebody wrote by hand and that is none comes back as {"content": text}."""
    if text.startswith("{"):
        found = _read(text)
        return found if isinstance(found, dict) else {"content": text}
    pairs = [line.partition(": ") for line in text.split("\n")]
    if not all(separator and _PLAIN_KEY.fullmatch(key) for key, separator, _ in pairs):
        return {"content": text}
    return {key: _read(written) for key, _, written in pairs}


def _written(value: Any) -> str:
    """A text as it is, where it can be told from JSON."""
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
    """What of a value JSON has no place for."""
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
    """Which fields and how many items it has, whatever they say."""
    if isinstance(value, Mapping):
        return {key: _shape(one) for key, one in value.items()}
    return [_shape(one) for one in value] if isinstance(value, list) else None


# What most agents need. The list is paid for in every request to a model, so the other tools are for who names them.
DEFAULT_TOOLS = ("memory_store", "memory_recall", "memory_get", "memory_update", "memory_delete")


class ToolError(Exception):
    """What the model should know about a call that failed, so that it can call again."""


def select_tools(memory: Trivet, names: Sequence[str]) -> list[AgentTool]:
    """The tools of these names, in this order. None of them shows what is sensitive."""
    categories = () if memory.server else memory.settings.categories  # a server has its own
    tools = agent_tools(categories=categories)
    if unknown := [name for name in names if name not in tools]:
        raise InvalidInput(
            f"tools: there is no {', '.join(unknown)}. There are: {', '.join(tools)}."
        )
    return [tools[name] for name in names]


async def call_tool(memory: Trivet, tool: AgentTool, arguments: Mapping[str, Any]) -> str:
    """The text for the model. What is wrong is raised as `ToolError`, for each framework to tell it in its own way."""
    try:
        return (await run_in_thread(lambda: call(memory, tool, arguments))).text
    except TrivetError as error:
        raise ToolError(public_message(error)) from None
