"""Seed phrases of wallets: twelve to twenty-four words of one published list (BIP 39), the last of which holds a check
sum. Nobody else writes twelve of these words in a row without a function word between them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.resources import files

from trivet.secrets.detect.value_shape import LazyPattern

# In words. Each has a check sum of a third of its words in bits.
LENGTHS = (24, 21, 18, 15, 12)
# A longer run of such words is the list itself, or a part of it.
LONGEST_RUN = 30
# Before a phrase, words that say what it is: then the check sum need not be right, since one word may be misspelled.
_NAMED = LazyPattern(r"seed|mnemonic|recovery|wallet|metamask|ledger|trezor|backup (?:words|phrase)", re.IGNORECASE)
NAMED_BEFORE = 60
# Words as short as those of the list, with nothing but blanks, commas and numbers between them.
_RUN = LazyPattern(r"(?<![^\W_])[A-Za-z]{3,8}+(?:[\s,;.:|\d()-]{1,12}+[A-Za-z]{3,8}+){11,}+")
_WORD = LazyPattern(r"[A-Za-z]+")

Span = tuple[int, int]


@cache
def _numbers() -> dict[str, int]:
    words = (files("mnemonic") / "wordlist" / "english.txt").read_text(encoding="utf-8").split()
    return {word: number for number, word in enumerate(words)}


def seed_phrases(text: str) -> Iterator[tuple[str, int, int]]:
    """Kind, start and stop of each phrase."""
    for short in _RUN().finditer(text):
        for run in _runs(text, short):
            if LENGTHS[-1] <= len(run) <= LONGEST_RUN and (span := _phrase(text, run)) is not None:
                yield "seed-phrase", *span


def _runs(text: str, short: re.Match[str]) -> Iterator[list[Span]]:
    """Words of the list that follow one another."""
    numbers = _numbers()
    run: list[Span] = []
    for word in _WORD().finditer(text, *short.span()):
        if word[0].lower() in numbers:
            run.append(word.span())
        elif run:
            yield run
            run = []
    yield run


def _phrase(text: str, run: Sequence[Span]) -> Span | None:
    words = [text[slice(*span)].lower() for span in run]
    for length in LENGTHS:
        for first in range(len(run) - length + 1):
            if _has_check_sum(words[first : first + length]):
                return run[first][0], run[first + length - 1][1]
    start = run[0][0]
    named = len(run) in LENGTHS and _NAMED().search(text, max(0, start - NAMED_BEFORE), start)
    return (start, run[-1][1]) if named else None


def _has_check_sum(words: Sequence[str]) -> bool:
    numbers = _numbers()
    value = 0
    for word in words:
        value = value << 11 | numbers[word]
    bits = len(words) // 3
    entropy, check = value >> bits, value & ((1 << bits) - 1)
    return hashlib.sha256(entropy.to_bytes(bits * 4)).digest()[0] >> (8 - bits) == check
