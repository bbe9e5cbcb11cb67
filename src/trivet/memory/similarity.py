"""How similar two texts are, word by word. Function words count: "deploy" and "do not deploy" differ."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from zlib import crc32

from trivet.analyse import UNSPACED, analyse, fold

# From this likeness on `remember` reports a near-duplicate; 0.75 is three words of four in common.
DUPLICATE_SIMILARITY = 0.75
# Hashes in a fingerprint: two texts of likeness 0.75 share about five of eight.
FINGERPRINT_SIZE = 8

_word = re.compile(f"[{UNSPACED}]|[^\\W{UNSPACED}]+")
_ascii_word = re.compile(
    r"[a-z0-9_]+"
)  # the same of a folded text of ASCII alone, in half of the time
# Function words that change the meaning, folded and without apostrophes. The analyser drops function words.
_meaning_changing = re.compile(
    r"\b(?:not|no|none|nothing|cannot|without|only|until|before|after|on|off|"
    r"(?:do|does|did|is|are|was|were|has|have|had|wo|would|could|should|ca|must|need|ai)nt)\b"
)

Words = Counter[str]


def words_of(text: str) -> Words:
    return Counter(_word_list(text))


def fingerprint(text: str) -> tuple[int, ...]:
    """The smallest hashes of the text's word pairs: similar texts share most of them."""
    words = _word_list(text)
    pairs = {f"{one} {other}" for one, other in pairwise(words)} or set(words)
    return tuple(sorted({crc32(pair.encode()) for pair in pairs})[:FINGERPRINT_SIZE])


def _word_list(text: str) -> list[str]:
    folded = fold(text).replace("'", "")
    return (_ascii_word if folded.isascii() else _word).findall(folded)


def likeness(one: Words, other: Words) -> float:
    """Dice's coefficient over words with repeats: 0 for nothing in common, 1 for the same words."""
    total = one.total() + other.total()
    return 2 * (one & other).total() / total if total else 0.0


def similarity_at_least(one: Words, other: Words, least: float) -> float:
    """The likeness if it is so much at least, else 0.

    Most texts that share some pairs of words are far from alike, and the different words they share tell that in a
    fraction of the time: no more can be in common than these and what `one` repeats.
    """
    total = one.total()
    in_common = len(one.keys() & other.keys()) + total - len(one)
    if 2 * in_common < least * (total + other.total()):
        return 0.0
    alike = likeness(one, other)
    return alike if alike >= least else 0.0


def content_key(text: str) -> tuple[str, ...]:
    """Equal for texts that say the same: the same stems in the same order, with the same negations.

    Case, punctuation, endings and most function words do not count. Any other word may be the one that matters
    ("backups run on Monday", "... on Tuesday"), so a share of common words is not enough.
    """
    return (*analyse(text), "|", *negations(text))


def negations(text: str) -> list[str]:
    """The words of a text, in their order, that the analyser drops and that change the meaning."""
    return _meaning_changing.findall(fold(text).replace("'", ""))
