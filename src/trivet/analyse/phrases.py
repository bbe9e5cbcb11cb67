"""Whether a text holds a phrase, found without folding the text: to fold a long one takes as long as all else."""

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

# What is not ASCII, in the view of a text below.
NON_ASCII = b"\x80"
# Put between parts of a text; folding leaves it alone.
SEPARATOR = "\0"
# A text with more of that than one byte in so many is folded at once: nearly all of its words would have to be.
MOSTLY_ASCII = 8

# What may stand before or behind a word without being part of what it is indexed by.
AROUND_WORDS = '"`*.,:;!?()[]{}'

# Kana, Chinese and Korean, of which folding never makes ASCII: one character stands for many.
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
    """What `contains_phrase(fold(text), folded)` says."""
    return PhraseSearch(text).holds(folded)


class IndexedPhrase:
    """What the index says of every English text that holds a phrase: where it does not, the text need not be read.

    It is told by the phrase's plain words. The first and the last may be parts of longer ones in the text, as `don` is
    of `don't`, and tell nothing. A word with a mark that no accented letter has, such as a caron on a q, is none to the
    analyser: a text that has one within the phrase counts as one without the phrase.
    """

    def __init__(self, folded: str) -> None:
        self.folded = folded
        self._words = [word.strip(AROUND_WORDS) for word in folded.split(" ")[1:-1]]
        self._terms = [_term(word) for word in self._words]
        self.terms = frozenset(term for term in self._terms if term)

    def may_occur_among(self, terms: str) -> bool:
        """Whether it may stand in a text with these terms, each between two spaces."""
        return all(_is_followed(terms, term, by) for term, by in self._followed)

    @cached_property
    def _followed(self) -> list[tuple[str, frozenset[str]]]:
        return list(_followed(self._words, self._terms))


class IndexedIdentifier:
    """What the index says of every English text that holds an identifier: its own term, or those of all of its parts.

    Parts are those of the identifier as it is asked for, or in small letters. A text that joins it to more, in capitals
    that make other parts of it (`x-PostgreSQL16` for `postgresql16`), counts as one without it.
    """

    def __init__(self, token: str, known: Set[str]) -> None:
        """`known`: the terms of which it will be told whether a text has them."""
        self.folded = fold(token)
        self._ways = [known & frozenset(way) for way in _ways(token)]

    def is_possible(self, held: Set[str]) -> bool:
        return any(way <= held for way in self._ways)


def _ways(token: str) -> list[Sequence[str]]:
    """Of each way to index an identifier, the terms. Where little is known of it, none: then every text may hold it."""
    runs = unspaced_run.findall(token)
    if runs:
        return [[term for run in runs for term in unspaced_terms(fold(run))]]
    if not token.isascii() or "'" in token:  # an apostrophe joins the parts beside it to one
        return [()]
    return [
        terms_in(ENGLISH)(token)[:1],
        english_terms_of_parts(token),
        english_terms_of_parts(token.lower()),
    ]


def _term(word: str) -> str | None:
    """None of what is no plain word; empty for a stop word, which the index leaves out."""
    is_plain = word.isascii() and word.isalpha() and len(word) <= LONGEST_TERM
    return "".join(terms_in(ENGLISH)(word)) if is_plain else None


def _followed(
    words: Sequence[str], terms: Sequence[str | None]
) -> Iterator[tuple[str, frozenset[str]]]:
    """Each term, and those of which one must follow it: the next word's, or one of parts, as in `GitHub` or `oN`."""
    for at, term in enumerate(terms):
        rest = list(takewhile(lambda later: later == "", terms[at + 1 :]))
        then = terms[at + 1 + len(rest)] if at + 1 + len(rest) < len(terms) else None
        if term and then:
            between = words[at + 1 : at + 1 + len(rest)]
            yield term, frozenset((then, *_of_parts(words[at]), *map(english_stem, between)))


def _of_parts(word: str) -> Iterator[str]:
    """What the first part of a word that the index does not leave out may be indexed by, however it is cut."""
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
    """One text, in which phrases are looked for."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._raw = text.encode(errors="surrogatepass")
        # Small letters, every white space a space, one mark for all that is not ASCII.
        self._view = self._raw.translate(_view)

    def holds(self, folded: str) -> bool:
        """What `contains_phrase(fold(text), folded)` says."""
        if folded.isascii() and self._is_in_view(folded) and contains_phrase(self._plain, folded):
            return True
        if self._text.isascii():
            return False
        mostly_ascii = self._view.count(NON_ASCII) * MOSTLY_ASCII < len(self._view)
        if mostly_ascii and not self._may_hold(folded):
            return False
        return contains_phrase(fold(self._text), folded)

    def _may_hold(self, folded: str) -> bool:
        """Of a phrase that does not stand where the text is ASCII: whether it may reach into a word that is not."""
        words = folded.split(" ")
        apart = self._folded_unspaced_parts if folded.isascii() else self._folded_non_ascii_parts
        if not all(word.encode() in self._view or word in apart for word in words):
            return False
        if SEPARATOR + SEPARATOR in apart:  # a part of which nothing is left joins its neighbours
            return True
        return self._may_go_through(apart, words) and _may_reach_into(apart, folded)

    def _may_go_through(self, apart: str, words: Sequence[str]) -> bool:
        """Words within a phrase stand side by side where the text is ASCII, or one of them is not ASCII there."""
        strange = set(apart.replace(SEPARATOR, " ").split(" "))
        plain = [pair for pair in pairwise(words[1:-1]) if strange.isdisjoint(pair)]
        return all(f" {one} {other} ".encode() in self._squeezed for one, other in plain)

    def _is_in_view(self, folded: str) -> bool:
        longest = max(
            folded.split(" "), key=len
        ).encode()  # most texts lack it, and need not be squeezed
        return longest in self._view and folded.encode() in self._squeezed

    @cached_property
    def _squeezed(self) -> bytes:
        view = self._view
        while b"  " in view:
            view = view.replace(b"  ", b" ")
        return view

    @cached_property
    def _plain(self) -> str:
        """Squeezed; what is not ASCII stands for a letter, so that nothing beside it counts as a whole word."""
        return self._squeezed.replace(NON_ASCII, b"x").decode()

    @cached_property
    def _strange(self) -> str:
        """The parts between spaces that are not ASCII throughout."""
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
    """Whether a phrase could be inside one of these folded parts of a text, begin or end in it, or go through it."""
    if folded in parts:
        return True
    words = folded.split(" ")
    if words[0] + SEPARATOR in parts or SEPARATOR + words[-1] in parts:
        return True
    ends = (SEPARATOR, " ")  # a part that folds into several words counts by its first and its last
    whole = (
        f"{one}{word}{other}"
        for word in words
        for one in ends
        for other in ends
        if one + other != "  "
    )
    return any(one in parts for one in whole)


def _not_ascii(raw: bytes, view: bytes) -> Iterator[str]:
    """The parts between spaces that are not ASCII throughout."""
    at = view.find(NON_ASCII)
    while at >= 0:
        stop = view.find(b" ", at)
        stop = len(view) if stop < 0 else stop
        yield raw[view.rfind(b" ", 0, at) + 1 : stop].decode(errors="surrogatepass")
        at = view.find(NON_ASCII, stop)
