"""Invented secrets, each different and none written out in a file."""

from __future__ import annotations

import hashlib
import string

ALNUM = string.ascii_letters + string.digits


def letters(name: str, length: int) -> str:
    """Return the same letters for the same name."""
    digest = hashlib.shake_256(name.encode()).digest(length)
    return "".join(ALNUM[byte % len(ALNUM)] for byte in digest)


def github(name: str) -> str:
    return "gh" + "p_" + letters(name, 36)


def password(name: str) -> str:
    return f"{letters(name, 9)}-7{letters(name + '2', 5)}!"
