"""What a reader finds in another system's files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from trivet.types import LinkKind


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that the other system remembers. `key` is its id there; links go to the keys of others."""

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


class Foreign(msgspec.Struct, frozen=True):
    """Another system: how its files are read, and what of them becomes what, for people to see before they agree."""

    label: str
    reads: str
    read: Callable[[Path], Iterator[Found]]
    mapping: tuple[tuple[str, str], ...]
