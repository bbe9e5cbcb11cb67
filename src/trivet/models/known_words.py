"""The words that the bundled embedder knows whole: some thirty thousand, most of them English, names among them."""

from __future__ import annotations

import re
from functools import cache
from itertools import count

from trivet.models import WEIGHTS

# How its tokenizer's file spells a piece before which a space stands.
_AFTER_SPACE = '"Ġ{}"'
_words_after_space = re.compile('"Ġ([^"\\\\]+)":'.encode())
# To look through the file takes a millisecond a word, to list its words twenty: who asks for more is no command that
# ends with its answer.
LOOKED_THROUGH = 6
_asked = count()


def is_known_word(word: str) -> bool:
    """In small letters, with a capital or in capitals."""
    spellings = {word.lower(), word.capitalize(), word.upper()}
    if next(_asked) < LOOKED_THROUGH:
        return any(_AFTER_SPACE.format(spelling).encode() in _vocabulary() for spelling in spellings)
    return any(spelling.encode() in _words() for spelling in spellings)


@cache
def _vocabulary() -> bytes:
    return (WEIGHTS / "embedder" / "tokenizer.json").read_bytes()


@cache
def _words() -> frozenset[bytes]:
    return frozenset(_words_after_space.findall(_vocabulary()))
