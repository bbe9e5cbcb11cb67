"""The YAML between two lines of hyphens that may begin a note."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from trivet.errors import InvalidInput

LONGEST = 512 * 1024
_BETWEEN_ITEMS = re.compile(r"[,\n]")
_OPENING = re.compile(r"---[ \t]*\n")
_CLOSING = re.compile(r"^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.MULTILINE)


def split_front_matter(text: str) -> tuple[Mapping[str, Any], str, int]:
    """The fields, the text after them, and the number of lines before it. Values stay texts: `no` is "no", not False.

    A text that begins with a line of hyphens but has no fields is plain text.
    """
    opening = _OPENING.match(text)
    closing = _CLOSING.search(text, opening.end()) if opening else None
    if opening is None or closing is None or closing.start() > LONGEST:
        return {}, text, 0
    try:
        fields = yaml.load(text[opening.end() : closing.start()], Loader=yaml.BaseLoader)
    except yaml.YAMLError as error:
        raise InvalidInput(
            f"its front matter is not YAML ({_place(error)}). Mend it, or take the first --- away"
        ) from None
    except RecursionError:
        raise InvalidInput("its front matter is nested too deeply. Mend it, or take the first --- away") from None
    if fields is not None and not isinstance(fields, dict):
        return {}, text, 0
    named = {str(name).strip().lower(): value for name, value in (fields or {}).items()}
    return named, text[closing.end() :], text[: closing.end()].count("\n")


def words(value: Any) -> tuple[str, ...]:
    """A list, or a text with commas, as Obsidian and others write tags and aliases."""
    items = value if isinstance(value, list) else _BETWEEN_ITEMS.split(value) if isinstance(value, str) else []
    return tuple(item.strip() for item in items if isinstance(item, str) and item.strip())


def text_of(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _place(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or "unreadable"
    return f"line {mark.line + 2}: {problem}" if mark is not None else str(problem)
