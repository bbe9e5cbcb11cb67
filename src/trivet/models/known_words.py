"""The words that the bundled embedder knows whole: some thirty thousand, most of them English, names among them."""

from __future__ import annotations

from functools import cache

from trivet.models import WEIGHTS

# How its tokenizer's file spells a piece before which a space stands.
_AFTER_SPACE = '"Ġ{}"'


def is_known_word(word: str) -> bool:
    """In small letters, with a capital or in capitals."""
    spellings = {word.lower(), word.capitalize(), word.upper()}
    return any(_AFTER_SPACE.format(spelling).encode() in _vocabulary() for spelling in spellings)


@cache
def _vocabulary() -> bytes:
    """As it stands in the file: to look a few words up takes a tenth of what reading it as JSON would."""
    return (WEIGHTS / "embedder" / "tokenizer.json").read_bytes()
