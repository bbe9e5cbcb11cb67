"""How much two texts say the same, word by word. Function words count: "deploy" and "do not deploy" differ."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from zlib import crc32

from trivet.analyse import UNSPACED, analyse, fold

# Reported on save at this likeness and above; 0.75 is three words of four in common.
REPORTED_FROM = 0.75
# How many hashes a fingerprint has: two texts that are three quarters alike share about five of eight.
FINGERPRINT_SIZE = 8

_word = re.compile(f"[{UNSPACED}]|[^\\W{UNSPACED}]+")
# Function words that turn the meaning, folded and without apostrophes; all others carry it by themselves.
_turning = re.compile(
    r"\b(?:not|no|none|nothing|cannot|without|only|until|before|after|on|off|"
    r"(?:do|does|did|is|are|was|were|has|have|had|wo|would|could|should|ca|must|need|ai)nt)\b"
)

Words = Counter[str]


def words_of(text: str) -> Words:
    return Counter(_sequence(text))


def fingerprint(text: str) -> tuple[int, ...]:
    """The smallest hashes of the text's word pairs: a sample that similar texts draw alike."""
    words = _sequence(text)
    return tuple(sorted({crc32(pair.encode()) for pair in _pairs(words)})[:FINGERPRINT_SIZE])


def _sequence(text: str) -> list[str]:
    return _word.findall(fold(text).replace("'", ""))


def likeness(one: Words, other: Words) -> float:
    """Dice's coefficient over words with repeats: 0 for nothing in common, 1 for the same words."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0


def essence(text: str) -> tuple[str, ...]:
    """Equal for texts that can stand for each other: the same stems in the same order, nothing negated.

    Case, punctuation, endings and most function words do not count. Any other word may be the one that matters
    ("backups run on Monday", "... on Tuesday"), so a share of common words would not do.
    """
    return (*analyse(text), "|", *_turning.findall(fold(text).replace("'", "")))


def _pairs(words: list[str]) -> Words:
    return Counter(f"{one} {other}" for one, other in pairwise(words)) or Counter(words)
