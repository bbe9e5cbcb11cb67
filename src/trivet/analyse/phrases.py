"""Phrase search without folding the text, which for long texts costs as much as all else."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence, Set
from functools import cached_property
from itertools import pairwise, takewhile

from trivet.analyse.languages import ENGLISH, STOP_WORDS
from trivet.analyse.terms import (
    LONGEST_TERM,
    contains_phrase,
    english_stem,
    english_terms_of_parts,
    fold,
    terms_in,
    unspaced_run,
    unspaced_terms,
)

# Stands for non-ASCII bytes in the view of a text.
NON_ASCII = b"\x80"
SEPARATOR = "\0"
# With more than one non-ASCII byte in this many, fold the text: nearly all words would need it.
MOSTLY_ASCII = 8

AROUND_WORDS = '"`*.,:;!?()[]{}'

# Kana, Chinese and Korean never fold to ASCII, so one character can represent all of them.
_never_ascii = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_white = frozenset(b"\t\n\v\f\r\x1c\x1d\x1e\x1f")
_view = bytes(
    0x80
    if byte >= 0x80
    else 0x20
    if byte in _white
    else byte + 32
    if 0x41 <= byte <= 0x5A
    else byte
    for byte in range(256)
)


def holds_phrase(text: str, folded: str) -> bool:
    """Return `contains_phrase(fold(text), folded)` faster."""
    return PhraseSearch(text).holds(folded)


class IndexedPhrase:
    """The index terms of every English text with a phrase, to skip reading others.

    Its first and last word may be parts of longer words, as `don` is of `don't`, and are ignored.
    The analyzer knows no word with an unusual combining mark, such as a caron on a q: a text with
    one inside the phrase is missed.
    """

    def __init__(self, folded: str) -> None:
        self.folded = folded
        self._words = [word.strip(AROUND_WORDS) for word in folded.split(" ")[1:-1]]
        self._terms = [_term(word) for word in self._words]
        self.terms = frozenset(term for term in self._terms if term)

    def may_occur_among(self, terms: str) -> bool:
        """Return whether a text with these terms, each between two spaces, may contain it."""
        return all(_is_followed(terms, term, by) for term, by in self._followed)

    @cached_property
    def _followed(self) -> list[tuple[str, frozenset[str]]]:
        return list(_followed(self._words, self._terms))


class IndexedIdentifier:
    """The index terms of every English text with an identifier: its own or its parts'.

    A text that joins it to capitals that split it differently (`x-PostgreSQL16` for `postgresql16`)
    is missed.
    """

    def __init__(self, token: str, known: Set[str]) -> None:
        self.folded = fold(token)
        self._ways = [known & frozenset(way) for way in _ways(token)]

    def is_possible(self, held: Set[str]) -> bool:
        return any(way <= held for way in self._ways)


def _ways(token: str) -> list[Sequence[str]]:
    """Return the terms of each way to index it; an empty one matches every text."""
    runs = unspaced_run.findall(token)
    if runs:
        return [[term for run in runs for term in unspaced_terms(fold(run))]]
    if not token.isascii() or "'" in token:  # an apostrophe joins its neighbors into one part
        return [()]
    return [
        terms_in(ENGLISH)(token)[:1],
        english_terms_of_parts(token),
        english_terms_of_parts(token.lower()),
    ]


def _term(word: str) -> str | None:
    """Return None unless it is a plain word; an empty text for a stop word."""
    is_plain = word.isascii() and word.isalpha() and len(word) <= LONGEST_TERM
    return "".join(terms_in(ENGLISH)(word)) if is_plain else None


def _followed(
    words: Sequence[str], terms: Sequence[str | None]
) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each term with those that may follow: the next word's, or parts' as in `GitHub`."""
    for at, term in enumerate(terms):
        rest = list(takewhile(lambda later: later == "", terms[at + 1 :]))
        then = terms[at + 1 + len(rest)] if at + 1 + len(rest) < len(terms) else None
        if term and then:
            between = words[at + 1 : at + 1 + len(rest)]
            yield term, frozenset((then, *_of_parts(words[at]), *map(english_stem, between)))


def _of_parts(word: str) -> Iterator[str]:
    begins = {0}
    for start in range(len(word)):
        if start in begins:
            parts = [word[start:stop] for stop in range(start + 1, len(word) + 1)]
            begins |= {start + len(part) for part in parts if part in STOP_WORDS}
            yield from (english_stem(part) for part in parts)


def _is_followed(terms: str, term: str, by: Set[str]) -> bool:
    sought = f" {term} "
    at = terms.find(sought)
    while at >= 0:
        start = at + len(sought)
        if terms[start : terms.find(" ", start)] in by:
            return True
        at = terms.find(sought, start - 1)
    return False


class PhraseSearch:
    def __init__(self, text: str) -> None:
        self._text = text
        self._raw = text.encode(errors="surrogatepass")
        # Lowercase, all white space as spaces, one mark for all non-ASCII bytes.
        self._view = self._raw.translate(_view)

    def holds(self, folded: str) -> bool:
        """Return `contains_phrase(fold(text), folded)`."""
        if folded.isascii() and self._is_in_view(folded) and contains_phrase(self._plain, folded):
            return True
        if self._text.isascii():
            return False
        mostly_ascii = self._view.count(NON_ASCII) * MOSTLY_ASCII < len(self._view)
        if mostly_ascii and not self._may_hold(folded):
            return False
        return contains_phrase(fold(self._text), folded)

    def _may_hold(self, folded: str) -> bool:
        """Return whether a phrase not in the ASCII parts may reach into a non-ASCII word."""
        words = folded.split(" ")
        apart = self._folded_unspaced_parts if folded.isascii() else self._folded_non_ascii_parts
        if not all(word.encode() in self._view or word in apart for word in words):
            return False
        if SEPARATOR + SEPARATOR in apart:  # a part that folds to nothing joins its neighbors
            return True
        return self._may_go_through(apart, words) and _may_reach_into(apart, folded)

    def _may_go_through(self, apart: str, words: Sequence[str]) -> bool:
        strange = set(apart.replace(SEPARATOR, " ").split(" "))
        plain = [pair for pair in pairwise(words[1:-1]) if strange.isdisjoint(pair)]
        return all(f" {one} {other} ".encode() in self._squeezed for one, other in plain)

    def _is_in_view(self, folded: str) -> bool:
        # Most texts lack the longest word and need no squeezing.
        longest = max(folded.split(" "), key=len).encode()
        return longest in self._view and folded.encode() in self._squeezed

    @cached_property
    def _squeezed(self) -> bytes:
        view = self._view
        while b"  " in view:
            view = view.replace(b"  ", b" ")
        return view

    @cached_property
    def _plain(self) -> str:
        """The squeezed view; non-ASCII becomes a letter, so no neighbor is a whole word."""
        return self._squeezed.replace(NON_ASCII, b"x").decode()

    @cached_property
    def _strange(self) -> str:
        return SEPARATOR.join(("", *_not_ascii(self._raw, self._view), ""))

    @cached_property
    def _folded_non_ascii_parts(self) -> str:
        return _folded_parts(self._strange)

    @cached_property
    def _folded_unspaced_parts(self) -> str:
        return _folded_parts(_never_ascii.sub("\u4e00", self._strange))


def _folded_parts(parts: str) -> str:
    return fold(parts).replace(f" {SEPARATOR}", SEPARATOR).replace(f"{SEPARATOR} ", SEPARATOR)


def _may_reach_into(parts: str, folded: str) -> bool:
    if folded in parts:
        return True
    words = folded.split(" ")
    if words[0] + SEPARATOR in parts or SEPARATOR + words[-1] in parts:
        return True
    ends = (SEPARATOR, " ")  # a part that folds into several words counts by its first and last
    whole = (
        f"{one}{word}{other}"
        for word in words
        for one in ends
        for other in ends
        if one + other != "  "
    )
    return any(one in parts for one in whole)


def _not_ascii(raw: bytes, view: bytes) -> Iterator[str]:
    at = view.find(NON_ASCII)
    while at >= 0:
        stop = view.find(b" ", at)
        stop = len(view) if stop < 0 else stop
        yield raw[view.rfind(b" ", 0, at) + 1 : stop].decode(errors="surrogatepass")
        at = view.find(NON_ASCII, stop)
