"""Analysis of a query: its words and their terms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

import msgspec

from trivet.analyse.languages import ENGLISH, language_of
from trivet.analyse.terms import (
    Terms,
    fold,
    function_words,
    is_identifier,
    terms_in,
    tokens_of,
    unspaced_run,
)

_quoted = re.compile(r'"([^"]{2,200})"')


class Reading(NamedTuple):
    """A word's term in texts of one language."""

    term: str
    language: str


class Word(msgspec.Struct, frozen=True):
    """A query's word and its terms, most specific first.

    A text with any of the `others`, its terms in other languages, contains it too.
    """

    text: str
    terms: Terms
    others: tuple[Reading, ...] = ()

    def is_held(self, text_terms: Set[str]) -> bool:
        """Return whether a text contains the word: `conn` alone is not `E_CONN_4012`."""
        # Runs for every word of every hit; a generator takes twice as long.
        if 2 * sum(map(text_terms.__contains__, self.terms)) > len(self.terms):
            return True
        return any(other.term in text_terms for other in self.others) if self.others else False

    def with_indexed_terms(self, holders: Mapping[str, int]) -> Word:
        """Return the word with indexed terms first and only indexed others."""
        held = tuple(other for other in self.others if holders.get(other.term, 0))
        if not held or any(holders.get(term, 0) for term in self.terms):
            return Word(self.text, self.terms, held)
        return Word(self.text, (held[0].term,), held[1:])


class Question(msgspec.Struct, frozen=True):
    """An analyzed query, for the legs and the exact-match bonus."""

    text: str
    folded: str
    words: tuple[Word, ...]
    phrases: tuple[str, ...]  # folded
    identifiers: tuple[str, ...]  # as written, each once
    quoted_only: bool = False  # the query is only quoted phrases
    languages: tuple[str, ...] = ()  # of the searched texts, except English

    @property
    def terms(self) -> Terms:
        return tuple(dict.fromkeys(term for word in self.words for term in word.terms))

    @property
    def others(self) -> dict[str, tuple[Reading, ...]]:
        """The terms in other languages, by each word's first term."""
        return {word.terms[0]: word.others for word in self.words if word.others}

    @property
    def every_term(self) -> Terms:
        others = (other.term for word in self.words for other in word.others)
        return tuple(dict.fromkeys((*self.terms, *others)))

    def words_matched_by(self, terms: Set[str]) -> list[str]:
        return [word.text for word in self.words if word.is_held(terms)]

    def with_indexed_terms(self, holders: Mapping[str, int]) -> Question:
        return msgspec.structs.replace(
            self, words=tuple(word.with_indexed_terms(holders) for word in self.words)
        )


def analyse_query(text: str, languages: Sequence[str] = ()) -> Question:
    """Analyze a query against texts in English and the given languages.

    A short query does not reveal its language, so each word gets every term it may be indexed by;
    only function words are dropped by the query's own language.
    """
    tokens = tokens_of(text)
    own = language_of(tokens, text.isascii())
    words: dict[str, Word] = {}
    identifiers: dict[str, str] = {}
    for token in dict.fromkeys(tokens):
        terms = _query_terms(token, own)
        if terms:
            words[token] = Word(
                token, terms, _others(token, terms, own, languages) if languages else ()
            )
        if is_identifier(token):
            identifiers.setdefault(fold(token), token)
    named = tuple(identifiers.values())
    phrases = tuple(dict.fromkeys(fold(match) for match in _quoted.findall(text) if fold(match)))
    quoted_only = bool(phrases) and not any(
        terms_in(own)(token) for token in tokens_of(_quoted.sub(" ", text))
    )
    return Question(
        text, fold(text), tuple(words.values()), phrases, named, quoted_only, tuple(languages)
    )


def _others(token: str, terms: Terms, own: str, languages: Sequence[str]) -> tuple[Reading, ...]:
    if len(terms) > 1 or unspaced_run.search(token):
        return ()
    spellings = dict.fromkeys((token, fold(token)))
    spoken = dict.fromkeys((own, *languages, ENGLISH))
    read = [
        (terms_in(language)(spelling), language) for language in spoken for spelling in spellings
    ]
    readings = dict.fromkeys(
        Reading(found[0], language) for found, language in read if len(found) == 1
    )
    return tuple(reading for reading in readings if reading.term not in terms)


def _query_terms(token: str, language: str) -> Terms:
    """Return the terms; of unspaced scripts only pairs, as single characters match everywhere."""
    if language != ENGLISH and fold(token) in function_words(language):
        return ()  # even those that texts keep: "not" does not tell memories apart
    terms = terms_in(language)(token)
    if not unspaced_run.search(token):
        return terms
    runs = [fold(run) for run in unspaced_run.findall(token) if len(run) > 1]
    singles = {character for run in runs for character in run}
    return tuple(term for term in dict.fromkeys(terms) if term not in singles) or tuple(
        dict.fromkeys(terms)
    )
