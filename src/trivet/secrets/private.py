"""`<private>...</private>`: parts that the writer keeps from every index, model and reader."""

from __future__ import annotations

import re

# Not `/?\s*`: two adjacent `\s*` would backtrack quadratically over many blanks.
_TAG = re.compile(r"<\s*(?:(?P<end>/)\s*)?private\b[^<>]*>", re.IGNORECASE)


def private_spans(text: str) -> list[tuple[int, int]]:
    """Start and stop of each private span with its marks. Marks nest; one that is never closed reaches to the end."""
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


def open_marks(text: str) -> int:
    """How many marks are still open at the end of the text, for readers that split it."""
    depth = 0
    for tag in _TAG.finditer(text):
        depth = max(0, depth - 1) if tag["end"] else depth + 1
    return depth


def without_private(text: str) -> str:
    """The text with a new line in place of each private span."""
    kept, position = [], 0
    for start, stop in private_spans(text):
        kept.append(text[position:start])
        position = stop
    return "\n".join([*kept, text[position:]])
