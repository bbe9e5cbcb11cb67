"""The analyzer shared by all stores: turns text into terms.

Words are folded and stemmed in their text's language. Identifiers (`camelCase`, paths, error codes,
versions) are kept whole and split. Scripts without spaces become characters and pairs.
"""

from __future__ import annotations

from trivet.analyse.languages import (
    ENGLISH,
    LANGUAGES,
    NOT_ENGLISH,
    STOP_WORDS,
    language_condition,
    language_markers,
    mark,
)
from trivet.analyse.phrases import IndexedIdentifier, IndexedPhrase, PhraseSearch, holds_phrase
from trivet.analyse.query import Question, Reading, Word, analyse_query
from trivet.analyse.terms import (
    ANALYSER_VERSION,
    LONGEST_TERM,
    UNSPACED,
    analyse,
    contains_phrase,
    first_terms,
    fold,
    is_identifier,
    language_and_terms,
    language_of_text,
    tokens_of,
)

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
    "language_condition",
    "language_markers",
    "language_of_text",
    "mark",
    "tokens_of",
]
