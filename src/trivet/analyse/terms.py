"""The terms of one token: a word's stem in a language, an identifier whole and in parts, pairs of characters."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, partial

import Stemmer

from trivet.analyse.function_words import FUNCTION_WORDS, STOP_WORDS
from trivet.analyse.languages import ENGLISH
from trivet.analyse.text import fold, token_pattern, unspaced_run
from trivet.bounded_cache import MIB, cached

# Longer "words" are base64, minified code or the like; their parts are indexed, the whole is not.
LONGEST_TERM = 64
# For the terms of English tokens, and as much for those of all other languages: each some 20,000 words.
TERMS_BYTES = 8 * MIB
# A stemmer that keeps what it stemmed would keep words of any length. Terms are kept here, so it has nothing to gain.
NOTHING_KEPT = 0

_path_separators = re.compile(r"[/:@#\\.]+")
_letters_or_digits = re.compile(r"[^\W\d_]+|\d+")
# Articles and pronouns that French and Italian write onto the next word: l'appartement, qu'elle, dell'anno.
_elided = re.compile(
    r"(?:[cdjlmnst]|qu|lorsqu|puisqu|quoiqu|all|dall|dell|nell|sull|un|quest|quell|dov|com)'(?=[^\W\d_]{2})",
    re.IGNORECASE,
)
# Letters that no accent can be taken from, as they are typed where a keyboard lacks them.
_spelled_out = str.maketrans({"œ": "oe", "æ": "ae", "ø": "o", "ł": "l", "đ": "d", "ı": "i"})
ELIDING = frozenset(("french", "italian"))

Terms = tuple[str, ...]
Stem = Callable[[str], str]
english_stem = Stemmer.Stemmer(ENGLISH, NOTHING_KEPT).stemWord


@cache
def terms_in(language: str) -> Callable[[str], Terms]:
    """What a token of a text in this language is indexed by."""
    return _english_terms if language == ENGLISH else partial(_other_terms, _Speech(language))


@cache
def function_words(language: str) -> frozenset[str]:
    """All function words of a language other than English, folded; also those that texts keep."""
    return frozenset(fold(word) for word in FUNCTION_WORDS[language].replace("|", " ").split())


def unspaced_terms(run: str) -> list[str]:
    return list(run) + [run[index : index + 2] for index in range(len(run) - 1)]


class _Speech:
    """How one language makes a term of a word: its function words and its stemmer.

    English folds a word before it stems it. Others stem first, since their endings have accents of their own
    (`habitación`, `habitaciones`), and fold the stem.
    """

    def __init__(self, language: str) -> None:
        self._elides = language in ELIDING
        dropped, _, _ = FUNCTION_WORDS[language].partition("|")
        self._dropped = frozenset(fold(word) for word in dropped.split())
        self._stem = Stemmer.Stemmer(language, NOTHING_KEPT).stemWord

    def terms(self, token: str) -> Terms:
        if self._elides and "'" in token:
            token = _elided.sub("", token)
        if "-" in token and all(fold(part) in self._dropped for part in token.split("-")):
            return ()  # French asks with them: a-t-il, est-ce
        return _terms(token, self.word)

    def word(self, part: str) -> Terms:
        folded = fold(part)
        if folded in self._dropped:
            return ()
        term = fold(self._stem(part.lower())) or folded
        return ((term if term.isascii() else term.translate(_spelled_out))[:LONGEST_TERM],)


def _english_word(part: str) -> Terms:
    folded = fold(part)
    return () if folded in STOP_WORDS else (english_stem(folded)[:LONGEST_TERM],)


def english_terms(token: str) -> Terms:
    """As `terms_in` has it, for who keeps what becomes of them."""
    return _terms(token, _english_word)


_english_terms = cached(TERMS_BYTES)(english_terms)


@cached(TERMS_BYTES)
def _other_terms(speech: _Speech, token: str) -> Terms:
    return speech.terms(token)


def english_terms_of_parts(token: str) -> Terms:
    """Of an identifier those of its parts alone, which a longer one that it is part of has too."""
    return tuple(term for part in _parts(token) for term in _english_word(part))


Speak = Callable[[str], Terms]


def _terms(token: str, word: Speak) -> Terms:
    if token.isascii() and token.isalpha() and (token.islower() or token[1:].islower() or len(token) == 1):
        return word(token)
    return _mixed_terms(token, word) if unspaced_run.search(token) else _compound(token, word)


def _mixed_terms(token: str, word: Speak) -> Terms:
    terms: list[str] = []
    position = 0
    for run in unspaced_run.finditer(token):
        terms.extend(_spaced_terms(token[position : run.start()], word))
        terms.extend(unspaced_terms(fold(run.group())))
        position = run.end()
    terms.extend(_spaced_terms(token[position:], word))
    return tuple(terms)


def _spaced_terms(text: str, word: Speak) -> list[str]:
    return [term for piece in token_pattern.findall(text) for term in _compound(piece, word)]


def _compound(token: str, word: Speak) -> Terms:
    """The whole token, its segments (`fooBar` in `module.fooBar`), and their parts as words."""
    if token.endswith(("'s", "'S")):
        token = token[:-2]
    token = token.replace("'", "")
    segments = [segment for segment in _path_separators.split(token) if segment]
    terms = [term for segment in segments for term in _segment_terms(segment, word)]
    whole = fold(token)
    if segments != [token] and len(whole) <= LONGEST_TERM:
        return (whole, *terms)
    return tuple(terms)


def _segment_terms(segment: str, word: Speak) -> list[str]:
    parts = _parts(segment)
    words = [term for part in parts for term in word(part)]
    if parts == [segment] or len(segment) > LONGEST_TERM:
        return words
    whole = fold(segment)
    # Stemmed like a word if it looks like one, so that `getusername` finds `getUserName`.
    return [english_stem(whole) if whole.isalpha() else whole, *words]


def _parts(segment: str) -> list[str]:
    """Letters apart from digits, and camel humps apart from each other: `HTTPServer2` gives HTTP, Server, 2."""
    return [part for run in _letters_or_digits.findall(segment) for part in _humps(run)]


def _humps(run: str) -> list[str]:
    if run.islower() or run.isupper() or run[1:].islower():
        return [run]
    cuts = [
        index
        for index in range(1, len(run))
        if run[index].isupper() and (run[index - 1].islower() or run[index + 1 : index + 2].islower())
    ]
    return [run[start:end] for start, end in zip([0, *cuts], [*cuts, len(run)], strict=True)]
