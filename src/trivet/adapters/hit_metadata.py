"""What a framework's document carries beside its text: plain values, so that it can be written as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from trivet.types import Hit

_SHOWN = (
    "id", "title", "category", "tags", "scope", "source", "created_at", "updated_at", "passage", "score", "relevance",
    "strength", "rank", "why",
)  # fmt: skip


def hit_metadata(hit: Hit) -> dict[str, Any]:
    """The fields of a hit by their own names (docs/hit.md); those that are empty are left out."""
    values = {name: value for name in _SHOWN if (value := getattr(hit, name)) not in (None, ())}
    shown: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(values))
    return shown
