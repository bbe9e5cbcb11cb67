"""Ids are UUIDv7: created by the client, sortable by time."""

from __future__ import annotations

import secrets
import time
import uuid

from trivet.errors import InvalidInput


def new_id() -> str:
    """Return a UUIDv7 (RFC 9562): 48 bits of milliseconds, then random bits."""
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds & ((1 << 48) - 1)) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    return str(uuid.UUID(int=value))


def check_id(text: str, field: str = "id") -> str:
    """Return an id in canonical spelling; any UUID is valid."""
    try:
        canonical = str(uuid.UUID(text))
    except (ValueError, AttributeError, TypeError):
        canonical = ""
    if not canonical or canonical != text.lower().strip():
        raise InvalidInput(
            f"{field}: {text!r} is not a UUID such as 0199c2f4-7d1e-7a3b-9c55-2f6f0f6c1a2b. "
            "Omit the id to have one generated."
        )
    return canonical


def reassigned_id(id: str, user: str) -> str:
    """Return the id of a user's memory whose own id another user has or may have."""
    return str(uuid.uuid5(uuid.UUID(id), user))


# The UUID version of ids derived from names, such as a vault's files.
_NAME_BASED_VERSION = 5


def is_name_based_id(id: str) -> bool:
    """Return whether another user may have derived the same id."""
    return uuid.UUID(id).version == _NAME_BASED_VERSION
