"""Any text as a part of a scope, and back: characters that a scope cannot have stand there as their numbers, between
dots."""

from __future__ import annotations

import re

_ESCAPED = re.compile(r"[^\w-]")
_ESCAPE = re.compile(r"\.([0-9a-f]{1,6})\.")


def as_label(text: str) -> str:
    return _ESCAPED.sub(lambda match: f".{ord(match[0]):x}.", text)


def from_label(label: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 16)), label)
