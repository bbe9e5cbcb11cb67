"""One analyser for every store: turns a text into the terms by which it is indexed and searched.

Words are folded and stemmed in the language of their text (`languages.py`). Identifiers (`camelCase`, `snake_case`,
paths, error codes, versions) are kept whole and split besides. Scripts written without spaces become characters and
pairs of characters.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from trivet.analyse.function_words import STOP_WORDS
from trivet.analyse.languages import ENGLISH, LANGUAGES, NOT_ENGLISH, language_of, mark, mark_among, marks_of
from trivet.analyse.phrase import IndexedIdentifier, IndexedPhrase, PhraseSearch, holds_phrase
from trivet.analyse.question import Question, Reading, Word, analyse_query
from trivet.analyse.terms import LONGEST_TERM, Terms, terms_in
from trivet.analyse.text import UNSPACED, contains_phrase, fold, is_identifier, tokens_of
from trivet.bounded_cache import MIB, cached

__all__ = [
    "ANALYSER_VERSION",
    "ENGLISH",
    "LANGUAGES",
    "LONGEST_TERM",
    "NOT_ENGLISH",
    "STOP_WORDS",
    "UNSPACED",
    "IndexedIdentifier",
    "IndexedPhrase",
    "PhraseSearch",
    "Question",
    "Reading",
    "Word",
    "analyse",
    "analyse_query",
    "contains_phrase",
    "first_terms",
    "fold",
    "holds_phrase",
    "is_identifier",
    "language_and_terms",
    "language_of_text",
    "mark",
    "mark_among",
    "marks_of",
    "tokens_of",
]

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
    return _analysed_and_cached(text, language) if len(text) <= LONGEST_CACHED else _analysed(text, language)


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
    return terms if language == ENGLISH or text.isascii() else (*terms, *_without_accents(tokens, terms, language))


_analysed_and_cached = cached(TEXTS_BYTES)(_analysed)


def _without_accents(tokens: Iterable[str], terms: Terms, language: str) -> Terms:
    """What its accented words become if they are typed without accents, where that has another stem."""
    terms_of, held = terms_in(language), set(terms)
    plain = dict.fromkeys(term for token in tokens if not token.isascii() for term in terms_of(fold(token)))
    return tuple(term for term in plain if term not in held)
