"""Placeholders of secrets, `<private>` parts, and masks of sensitive memories."""

from __future__ import annotations

import re
from collections.abc import Mapping

import msgspec

from trivet.types import Memory

PRIVATE = "private"
PLACEHOLDER = re.compile(
    r"\[(?:secret:(?P<kind>[a-z0-9-]+):(?P<number>[1-9]\d{0,8})|private(?::(?P<private>[1-9]\d{0,8}))?)\]"
)

# Kind and number of a secret, unique within a memory.
Name = tuple[str, int]


def placeholder(kind: str, number: int) -> str:
    if kind == PRIVATE:
        return "[private]" if number == 1 else f"[private:{number}]"
    return f"[secret:{kind}:{number}]"


def placeholder_names(text: str) -> list[Name]:
    return [_name(match) for match in PLACEHOLDER.finditer(text)]


def fill_placeholders(text: str, values: Mapping[Name, str]) -> str:
    return PLACEHOLDER.sub(lambda match: values.get(_name(match), match[0]), text)


def renumber_placeholders(text: str, by: int) -> str:
    """Raise placeholder numbers, so that two memories' numbers differ."""

    def moved(match: re.Match[str]) -> str:
        kind, number = _name(match)
        return placeholder(kind, number + by)

    return PLACEHOLDER.sub(moved, text) if "[" in text else text


def without_placeholders(text: str) -> str:
    return PLACEHOLDER.sub(" ", text) if "[" in text else text


def _name(match: re.Match[str]) -> Name:
    if match["kind"] is not None:
        return match["kind"], int(match["number"])
    return PRIVATE, int(match["private"] or 1)


MASK = "[sensitive; reveal it to read]"


def masked(memory: Memory, reveal: bool = False, viewer: str | None = None) -> Memory:
    """Return the memory without its text if it is sensitive, unless its owner reveals it."""
    if not memory.sensitive or (reveal and viewer in (None, memory.owner)):
        return memory
    return msgspec.structs.replace(
        memory,
        content=MASK,
        title=MASK if memory.title else None,
        expanded_keywords=(),
        source=None,
    )


# Not `/?\s*`: two adjacent `\s*` would backtrack quadratically over many blanks.
_TAG = re.compile(r"<\s*(?:(?P<end>/)\s*)?private\b[^<>]*>", re.IGNORECASE)


def private_spans(text: str) -> list[tuple[int, int]]:
    """Return private spans with their tags, which nest; an open one extends to the end."""
    if "<" not in text:
        return []
    spans: list[tuple[int, int]] = []
    depth = start = 0
    for tag in _TAG.finditer(text):
        if not tag["end"]:
            start = start if depth else tag.start()
            depth += 1
        elif depth:
            depth -= 1
            if not depth:
                spans.append((start, tag.end()))
    return [*spans, (start, len(text))] if depth else spans


def open_private_tags(text: str) -> int:
    depth = 0
    for tag in _TAG.finditer(text):
        depth = max(0, depth - 1) if tag["end"] else depth + 1
    return depth


def remove_private_parts(text: str) -> str:
    kept, position = [], 0
    for start, stop in private_spans(text):
        kept.append(text[position:start])
        position = stop
    return "\n".join([*kept, text[position:]])
