"""Text as it is compared: folded, and cut into words and identifiers.

The terms of one token: a word's stem in a language, an identifier whole and in parts, pairs of characters.

Terms as numbers: so that an index file needs no dictionary that must be kept, loaded or agreed upon.
"""

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
# Starts and ends with a letter or digit; joiners may stand inside (`don't`, `a/b.py`, `E_CONN`); C++ keeps its tail.
token_pattern = re.compile(r"[^\W_](?:[\w.\-/:@#+'\\]*[^\W_])?[+#]*")
_hyphen_or_apostrophe = re.compile(r"[-']")
_combining_marks = re.compile("[\u0300-\u036f]")


def fold(text: str) -> str:
    """Compatibility forms unified, case and Latin diacritics removed, white space squeezed."""
    if text.isascii():
        return " ".join(text.lower().split())
    decomposed = _straight(unicodedata.normalize("NFKD", text).casefold())
    return " ".join(unicodedata.normalize("NFC", _combining_marks.sub("", decomposed)).split())


def tokens_of(text: str) -> list[str]:
    """The words and identifiers of a text as they are written, punctuation left out."""
    if not text.isascii():
        text = _straight(unicodedata.normalize("NFKC", text))
    return token_pattern.findall(text)


def is_identifier(token: str) -> bool:
    """Whether a token is no ordinary word: inner capitals, digits among letters, joiners other than - and '."""
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
    """Whether the phrase stands in the text as whole words."""
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
    """Typographic apostrophes as plain ones; str.translate would take ten times as long."""
    return text.replace("\u2019", "'").replace("\u02bc", "'")


# A change to what the analyser emits needs a new version: stores notice it and rebuild their lexical index.
ANALYSER_VERSION = 2


# For the terms of the latest texts of at most this length: some thousand notes of usual length.
TEXTS_BYTES = 16 * MIB


LONGEST_CACHED = 1_000


def analyse(text: str, language: str | None = None) -> Terms:
    """The terms of a text in reading order, repeated as often as they occur.

    The language is that of the text unless it is given: a title or a keyword is too short to show its own.
    """
    # One recall analyses the same few texts several times, and the next recall often the same ones.
    return (
        _analysed_and_cached(text, language)
        if len(text) <= LONGEST_CACHED
        else _analysed(text, language)
    )


def language_of_text(text: str) -> str:
    """The name of its Snowball stemmer; `english` for everything that is not surely one of `LANGUAGES`."""
    return language_of(tokens_of(text), text.isascii())


def language_and_terms(text: str) -> tuple[str, Terms]:
    """Both of a text that is being stored. Its terms are not kept, since whoever stores many asks for none again."""
    tokens = tokens_of(text)
    language = language_of(tokens, text.isascii())
    return language, _terms_of(tokens, text, language)


def first_terms(text: str, count: int) -> Terms:
    """The first few of `analyse`, without analysing the rest of a long text."""
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
    """What its accented words become if they are typed without accents, where that has another stem."""
    terms_of, held = terms_in(language), set(terms)
    plain = dict.fromkeys(
        term for token in tokens if not token.isascii() for term in terms_of(fold(token))
    )
    return tuple(term for term in plain if term not in held)


# Longer "words" are base64, minified code or the like; their parts are indexed, the whole is not.
LONGEST_TERM = 64
# For the terms of English tokens, and as much for those of all other languages: each some 20,000 words.
TERMS_BYTES = 8 * MIB
# A stemmer that keeps what it stemmed would keep words of any length. Terms are kept here, so it has nothing to gain.
NO_STEMMER_CACHE = 0

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
english_stem = Stemmer.Stemmer(ENGLISH, NO_STEMMER_CACHE).stemWord


@cache
def terms_in(language: str) -> Callable[[str], Terms]:
    """What a token of a text in this language is indexed by."""
    return (
        _english_terms if language == ENGLISH else partial(_other_terms, _LanguageRules(language))
    )


@cache
def function_words(language: str) -> frozenset[str]:
    """All function words of a language other than English, folded; also those that texts keep."""
    return frozenset(fold(word) for word in FUNCTION_WORDS[language].replace("|", " ").split())


def unspaced_terms(run: str) -> list[str]:
    return list(run) + [run[index : index + 2] for index in range(len(run) - 1)]


class _LanguageRules:
    """How one language makes a term of a word: its function words and its stemmer.

    English folds a word before it stems it. Others stem first, since their endings have accents of their own
    (`habitación`, `habitaciones`), and fold the stem.
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
def _other_terms(speech: _LanguageRules, token: str) -> Terms:
    return speech.terms(token)


def english_terms_of_parts(token: str) -> Terms:
    """Of an identifier those of its parts alone, which a longer one that it is part of has too."""
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


def _segment_terms(segment: str, word: WordTerms) -> list[str]:
    parts = _parts(segment)
    words = [term for part in parts for term in word(part)]
    if parts == [segment] or len(segment) > LONGEST_TERM:
        return words
    whole = fold(segment)
    # Stemmed like a word if it looks like one, so that `getusername` finds `getUserName`.
    return [english_stem(whole) if whole.isalpha() else whole, *words]


def _parts(segment: str) -> list[str]:
    """Letters apart from digits, and camel humps apart from each other: `HTTPServer2` gives HTTP, Server, 2."""
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


# Two of a million different terms share a number of 64 bits with a chance of one in forty million.
HASH_BYTES = 8


def hashed(term: str) -> int:
    return int.from_bytes(
        blake2b(term.encode(errors="replace"), digest_size=HASH_BYTES).digest(), "little"
    )
