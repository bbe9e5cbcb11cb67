"""Other systems and the data types of their readers, light enough for the help texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import msgspec

from trivet.types import LinkKind


class ForeignMemory(msgspec.Struct, frozen=True, kw_only=True):
    """A memory of another system; `key` and links are that system's ids."""

    kind: str
    key: str
    content: str
    title: str = ""
    category: str = "facts"
    tags: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    importance: float = 0.5
    confidence: float = 1.0
    created_at: str | None = None
    updated_at: str | None = None
    valid_to: str | None = None
    sensitive: bool = False
    links: tuple[tuple[LinkKind, str], ...] = ()


class ForeignSystem(msgspec.Struct, frozen=True):
    """A system, its reader, and the mapping of fields shown before an import."""

    label: str
    reads: str
    read: Callable[[Path], Iterator[ForeignMemory]]
    mapping: tuple[tuple[str, str], ...]


SystemName = Literal[
    "mcp-memory", "claude-memory-mcp", "mem0", "basic-memory", "claude-mem", "agentmemory"
]
