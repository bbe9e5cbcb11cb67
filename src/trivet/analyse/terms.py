"""Folding, tokens and terms: how text is compared, split and indexed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from hashlib import blake2b

import Stemmer

from trivet.analyse.languages import (
    ENGLISH,
    FUNCTION_WORDS,
    STOP_WORDS,
    language_of,
)
from trivet.common.bounded_cache import MIB, cached

# Thai to Lao, Burmese, Khmer, then Japanese, Chinese and Korean.
UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
    "\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff"
)
unspaced_run = re.compile(f"[{UNSPACED}]+")
# Starts and ends with a letter or digit, may contain joiners (`don't`, `a/b.py`, `E_CONN`); C++
# keeps its tail.
token_pattern = re.compile(r"[^\W_](?:[\w.\-/:@#+'\\]*[^\W_])?[+#]*")
_hyphen_or_apostrophe = re.compile(r"[-']")
_combining_marks = re.compile("[\u0300-\u036f]")


def fold(text: str) -> str:
    """Unify compatibility forms, case, Latin diacritics and white space."""
    if text.isascii():
        return " ".join(text.lower().split())
    decomposed = _straight(unicodedata.normalize("NFKD", text).casefold())
    return " ".join(unicodedata.normalize("NFC", _combining_marks.sub("", decomposed)).split())


def tokens_of(text: str) -> list[str]:
    """Return the words and identifiers as written, without punctuation."""
    if not text.isascii():
        text = _straight(unicodedata.normalize("NFKC", text))
    return token_pattern.findall(text)


def is_identifier(token: str) -> bool:
    """Return whether a token has inner capitals, digits, or joiners besides - and '."""
    if token.isalpha():
        return (
            not (token.islower() or token.isupper() or token.istitle())
            and token[1:].lower() != token[1:]
        )
    if token.isdigit():
        return False
    letters = [part for part in _hyphen_or_apostrophe.split(token) if part]
    return not all(part.isalpha() for part in letters)


def contains_phrase(folded_text: str, folded_phrase: str) -> bool:
    """Return whether the text contains the phrase as whole words."""
    start = folded_text.find(folded_phrase)
    while start >= 0:
        end = start + len(folded_phrase)
        if _boundary(folded_text, start) and _boundary(folded_text, end):
            return True
        start = folded_text.find(folded_phrase, start + 1)
    return False


def _boundary(text: str, position: int) -> bool:
    if position == 0 or position == len(text):
        return True
    before, after = text[position - 1], text[position]
    if unspaced_run.match(before) or unspaced_run.match(after):
        return True
    return not (before.isalnum() and after.isalnum())


def _straight(text: str) -> str:
    """Straighten apostrophes; str.translate takes ten times as long."""
    return text.replace("\u2019", "'").replace("\u02bc", "'")


# Increase it when the emitted terms change: stores then rebuild their lexical index.
ANALYSER_VERSION = 2


# Cache for the terms of recent texts up to LONGEST_CACHED: a few thousand notes of usual length.
TEXTS_BYTES = 16 * MIB


LONGEST_CACHED = 1_000


def analyse(text: str, language: str | None = None) -> Terms:
    """Return a text's terms in reading order, with repetitions.

    Give the `language` of titles and keywords, which are too short to reveal it.
    """
    # A recall analyzes the same few texts several times, and so does the next one.
    return (
        _analysed_and_cached(text, language)
        if len(text) <= LONGEST_CACHED
        else _analysed(text, language)
    )


def language_of_text(text: str) -> str:
    """Return a Snowball stemmer's name; `english` unless clearly another language."""
    return language_of(tokens_of(text), text.isascii())


def language_and_terms(text: str) -> tuple[str, Terms]:
    """Return both for a text being stored, without caching."""
    tokens = tokens_of(text)
    language = language_of(tokens, text.isascii())
    return language, _terms_of(tokens, text, language)


def first_terms(text: str, count: int) -> Terms:
    """Return the first terms without analyzing the rest of a long text."""
    return analyse(text[:LONGEST_CACHED])[:count]


def _analysed(text: str, language: str | None) -> Terms:
    tokens = tokens_of(text)
    return _terms_of(tokens, text, language or language_of(tokens, text.isascii()))


def _terms_of(tokens: Sequence[str], text: str, language: str) -> Terms:
    terms_of = terms_in(language)
    terms = tuple([term for token in tokens for term in terms_of(token)])
    return (
        terms
        if language == ENGLISH or text.isascii()
        else (*terms, *_without_accents(tokens, terms, language))
    )


_analysed_and_cached = cached(TEXTS_BYTES)(_analysed)


def _without_accents(tokens: Iterable[str], terms: Terms, language: str) -> Terms:
    terms_of, held = terms_in(language), set(terms)
    plain = dict.fromkeys(
        term for token in tokens if not token.isascii() for term in terms_of(fold(token))
    )
    return tuple(term for term in plain if term not in held)


# Longer "words" are base64, minified code or the like; only their parts are indexed.
LONGEST_TERM = 64
# Cache for terms of English tokens, and the same for other languages: about 20,000 words each.
TERMS_BYTES = 8 * MIB
# The stemmer's own cache holds words of any length; terms are cached here instead.
NO_STEMMER_CACHE = 0

_path_separators = re.compile(r"[/:@#\\.]+")
_letters_or_digits = re.compile(r"[^\W\d_]+|\d+")
# Articles and pronouns that French and Italian attach to a word: l'appartement, qu'elle, dell'anno.
_elided = re.compile(
    r"(?:[cdjlmnst]|qu|lorsqu|puisqu|quoiqu|all|dall|dell|nell|sull|un|quest|quell|dov"
    r"|com)'(?=[^\W\d_]{2})",
    re.IGNORECASE,
)
# Letters that cannot lose an accent, as typed on keyboards without them.
_spelled_out = str.maketrans({"œ": "oe", "æ": "ae", "ø": "o", "ł": "l", "đ": "d", "ı": "i"})
ELIDING = frozenset(("french", "italian"))

Terms = tuple[str, ...]
Stem = Callable[[str], str]
english_stem = Stemmer.Stemmer(ENGLISH, NO_STEMMER_CACHE).stemWord


@cache
def terms_in(language: str) -> Callable[[str], Terms]:
    return (
        _english_terms if language == ENGLISH else partial(_other_terms, _LanguageRules(language))
    )


@cache
def function_words(language: str) -> frozenset[str]:
    """Return a foreign language's function words, folded, including indexed ones."""
    return frozenset(fold(word) for word in FUNCTION_WORDS[language].replace("|", " ").split())


def unspaced_terms(run: str) -> list[str]:
    return list(run) + [run[index : index + 2] for index in range(len(run) - 1)]


class _LanguageRules:
    """How one language turns a word into a term.

    English folds, then stems. Others stem first, because endings carry accents (`habitación`,
    `habitaciones`), then fold.
    """

    def __init__(self, language: str) -> None:
        self._elides = language in ELIDING
        dropped, _, _ = FUNCTION_WORDS[language].partition("|")
        self._dropped = frozenset(fold(word) for word in dropped.split())
        self._stem = Stemmer.Stemmer(language, NO_STEMMER_CACHE).stemWord

    def terms(self, token: str) -> Terms:
        if self._elides and "'" in token:
            token = _elided.sub("", token)
        if "-" in token and all(fold(part) in self._dropped for part in token.split("-")):
            return ()  # French questions: a-t-il, est-ce
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
    """Return an English token's terms, uncached."""
    return _terms(token, _english_word)


_english_terms = cached(TERMS_BYTES)(english_terms)


@cached(TERMS_BYTES)
def _other_terms(speech: _LanguageRules, token: str) -> Terms:
    return speech.terms(token)


def english_terms_of_parts(token: str) -> Terms:
    """Return the terms of an identifier's parts, shared by longer identifiers around it."""
    return tuple(term for part in _parts(token) for term in _english_word(part))


WordTerms = Callable[[str], Terms]


def _terms(token: str, word: WordTerms) -> Terms:
    if (
        token.isascii()
        and token.isalpha()
        and (token.islower() or token[1:].islower() or len(token) == 1)
    ):
        return word(token)
    return _mixed_terms(token, word) if unspaced_run.search(token) else _compound(token, word)


def _mixed_terms(token: str, word: WordTerms) -> Terms:
    terms: list[str] = []
    position = 0
    for run in unspaced_run.finditer(token):
        terms.extend(_spaced_terms(token[position : run.start()], word))
        terms.extend(unspaced_terms(fold(run.group())))
        position = run.end()
    terms.extend(_spaced_terms(token[position:], word))
    return tuple(terms)


def _spaced_terms(text: str, word: WordTerms) -> list[str]:
    return [term for piece in token_pattern.findall(text) for term in _compound(piece, word)]


def _compound(token: str, word: WordTerms) -> Terms:
    """Return the whole token, its segments (`fooBar` in `module.fooBar`) and their words."""
    if token.endswith(("'s", "'S")):
        token = token[:-2]
    token = token.replace("'", "")
    segments = [segment for segment in _path_separators.split(token) if segment]
    terms = [term for segment in segments for term in _segment_terms(segment, word)]
    whole = fold(token)
    if segments != [token] and len(whole) <= LONGEST_TERM:
        return (whole, *terms)
    return tuple(terms)


def _segment_terms(segment: str, word: WordTerms) -> list[str]:
    parts = _parts(segment)
    words = [term for part in parts for term in word(part)]
    if parts == [segment] or len(segment) > LONGEST_TERM:
        return words
    whole = fold(segment)
    # Stem it if it looks like a word, so that `getusername` finds `getUserName`.
    return [english_stem(whole) if whole.isalpha() else whole, *words]


def _parts(segment: str) -> list[str]:
    """Split `HTTPServer2` into HTTP, Server, 2."""
    return [part for run in _letters_or_digits.findall(segment) for part in _camel_case_parts(run)]


def _camel_case_parts(run: str) -> list[str]:
    if run.islower() or run.isupper() or run[1:].islower():
        return [run]
    cuts = [
        index
        for index in range(1, len(run))
        if run[index].isupper()
        and (run[index - 1].islower() or run[index + 1 : index + 2].islower())
    ]
    return [run[start:end] for start, end in zip([0, *cuts], [*cuts, len(run)], strict=True)]


# The chance that any two of a million terms share a 64-bit number is one in forty million.
HASH_BYTES = 8


def hashed(term: str) -> int:
    return int.from_bytes(
        blake2b(term.encode(errors="replace"), digest_size=HASH_BYTES).digest(), "little"
    )
