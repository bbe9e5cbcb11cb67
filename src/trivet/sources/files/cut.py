"""Cutting a text that is too long for one memory, at the best place there is: paragraph, line, word, character."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trivet.secrets.private import open_marks

# Below the most that a memory holds, since placeholders may be longer than the secrets they stand for.
MOST_BYTES = 24 * 1024
_SEAMS = (re.compile(r"\n[ \t]*\n"), re.compile(r"\n"), re.compile(r"\s"))


def pieces(text: str, most: int = MOST_BYTES) -> Iterator[str]:
    """As `cuts`, and what was private in the text is so in every piece of it."""
    depth = 0
    for piece in cuts(text, most):
        marked = "<private>" * depth + piece
        yield marked
        depth = open_marks(marked)


def cuts(text: str, most: int = MOST_BYTES) -> Iterator[str]:
    """The text in pieces of at most so many bytes of UTF-8, without blank space around them; none is empty."""
    rest = text.strip()
    while len(rest.encode()) > most:
        window = rest.encode()[:most].decode(errors="ignore")
        stop = _seam(window)
        yield rest[:stop].rstrip()
        rest = rest[stop:].lstrip()
    if rest:
        yield rest


def _seam(window: str) -> int:
    """Not in the first half: better a cut within a paragraph than crumbs."""
    for seam in _SEAMS:
        ends = [found.start() for found in seam.finditer(window) if found.start() > len(window) // 2]
        if ends:
            return ends[-1]
    return len(window)
