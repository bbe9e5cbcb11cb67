"""What replaces a secret in a text: `[secret:github-token:1]`, or `[private]`."""

from __future__ import annotations

import re
from collections.abc import Mapping

PRIVATE = "private"
PLACEHOLDER = re.compile(
    r"\[(?:secret:(?P<kind>[a-z0-9-]+):(?P<number>[1-9]\d{0,8})|private(?::(?P<private>[1-9]\d{0,8}))?)\]"
)

# A secret by its kind and number, which together are unique within a memory.
Name = tuple[str, int]


def placeholder(kind: str, number: int) -> str:
    if kind == PRIVATE:
        return "[private]" if number == 1 else f"[private:{number}]"
    return f"[secret:{kind}:{number}]"


def names_in(text: str) -> list[Name]:
    return [_name(match) for match in PLACEHOLDER.finditer(text)]


def filled(text: str, values: Mapping[Name, str]) -> str:
    """The text with every placeholder whose value is known replaced by it."""
    return PLACEHOLDER.sub(lambda match: values.get(_name(match), match[0]), text)


def renumbered(text: str, by: int) -> str:
    """The text with numbers of its own: those of two memories mean nothing beside each other."""

    def moved(match: re.Match[str]) -> str:
        kind, number = _name(match)
        return placeholder(kind, number + by)

    return PLACEHOLDER.sub(moved, text) if "[" in text else text


def without_placeholders(text: str) -> str:
    """For models and the graph: a placeholder is no name or term of the text."""
    return PLACEHOLDER.sub(" ", text) if "[" in text else text


def _name(match: re.Match[str]) -> Name:
    if match["kind"] is not None:
        return match["kind"], int(match["number"])
    return PRIVATE, int(match["private"] or 1)
