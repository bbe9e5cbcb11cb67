"""Similarity of two texts, word by word. Function words count: "deploy" is not "do not deploy"."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from zlib import crc32

from trivet.analyse import UNSPACED, analyse, fold

# Three of four words in common.
DUPLICATE_SIMILARITY = 0.75
# Two texts of likeness 0.75 share about five of these eight hashes.
FINGERPRINT_SIZE = 8

_word = re.compile(f"[{UNSPACED}]|[^\\W{UNSPACED}]+")
_ascii_word = re.compile(r"[a-z0-9_]+")  # same result for folded ASCII text in half the time
# Function words that change the meaning, folded and without apostrophes; `analyse` drops them.
_meaning_changing = re.compile(
    r"\b(?:not|no|none|nothing|cannot|without|only|until|before|after|on|off|"
    r"(?:do|does|did|is|are|was|were|has|have|had|wo|would|could|should|ca|must|need|ai)nt)\b"
)

Words = Counter[str]


def words_of(text: str) -> Words:
    return Counter(_word_list(text))


def fingerprint(text: str) -> tuple[int, ...]:
    """Return the smallest hashes of word pairs; similar texts share most."""
    words = _word_list(text)
    pairs = {f"{one} {other}" for one, other in pairwise(words)} or set(words)
    return tuple(sorted({crc32(pair.encode()) for pair in pairs})[:FINGERPRINT_SIZE])


def _word_list(text: str) -> list[str]:
    folded = fold(text).replace("'", "")
    return (_ascii_word if folded.isascii() else _word).findall(folded)


def likeness(one: Words, other: Words) -> float:
    """Return Dice's coefficient over words with repeats, from 0 to 1."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0


def similarity_at_least(one: Words, other: Words, least: float) -> float:
    """Return the likeness, or 0 below `least`; a cheap bound rejects most pairs."""
    total = one.total()
    in_common = len(one.keys() & other.keys()) + total - len(one)
    if 2 * in_common < least * (total + other.total()):
        return 0.0
    alike = likeness(one, other)
    return alike if alike >= least else 0.0


def content_key(text: str) -> tuple[str, ...]:
    """Return a key for the stems and negations in order."""
    return (*analyse(text), "|", *negations(text))


def negations(text: str) -> list[str]:
    return _meaning_changing.findall(fold(text).replace("'", ""))
