"""Ids are UUIDv7, made by the client: sortable by time, and the same in every store and on every machine."""

from __future__ import annotations

import secrets
import time
import uuid

from trivet.errors import InvalidInput


def new_id() -> str:
    """A UUIDv7 (RFC 9562): 48 bits of milliseconds, then random bits."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & ((1 << 48) - 1)) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def check_id(text: str, field: str = "id") -> str:
    """The canonical spelling of an id. Any UUID is accepted, so that ids of other tools can be kept."""
    try:
        canonical = str(uuid.UUID(text))
    except (ValueError, AttributeError, TypeError):
        canonical = ""
    if not canonical or canonical != text.lower().strip():
        raise InvalidInput(
            f"{field}: {text!r} is not a UUID. Ids look like 0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b; "
            "leave the id out and one is made for you."
        )
    return canonical
