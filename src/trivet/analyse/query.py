"""An analysed query: its words, each with the terms that a text may hold it by."""

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
    """A term that stands for a word in texts of one language."""

    term: str
    language: str


class Word(msgspec.Struct, frozen=True):
    """One word of a query and its terms, the most specific first.

    `others` are what the word is indexed by in texts of other languages. A text that holds one of them holds the word.
    """

    text: str
    terms: Terms
    others: tuple[Reading, ...] = ()

    def is_held(self, text_terms: Set[str]) -> bool:
        """Whether a text with these terms contains the word: one with only `conn` does not contain `E_CONN_4012`."""
        # Asked of every word for every hit: half as long as with a generator.
        if 2 * sum(map(text_terms.__contains__, self.terms)) > len(self.terms):
            return True
        return any(other.term in text_terms for other in self.others) if self.others else False

    def with_indexed_terms(self, holders: Mapping[str, int]) -> Word:
        """The word with a term first that some text holds, if any does, and without the others that none holds."""
        held = tuple(other for other in self.others if holders.get(other.term, 0))
        if not held or any(holders.get(term, 0) for term in self.terms):
            return Word(self.text, self.terms, held)
        return Word(self.text, (held[0].term,), held[1:])


class Question(msgspec.Struct, frozen=True):
    """An analysed query: what the legs and the exact-match bonus need of it."""

    text: str
    folded: str
    words: tuple[Word, ...]
    phrases: tuple[str, ...]  # folded
    identifiers: tuple[str, ...]  # as they are written, each once
    quoted_only: bool = False  # nothing but quoted phrases was asked for
    languages: tuple[str, ...] = ()  # other than English, of the texts that it is asked of

    @property
    def terms(self) -> Terms:
        return tuple(dict.fromkeys(term for word in self.words for term in word.terms))

    @property
    def others(self) -> dict[str, tuple[Reading, ...]]:
        """By a term: what counts as the same, being the same word in other languages."""
        return {word.terms[0]: word.others for word in self.words if word.others}

    @property
    def every_term(self) -> Terms:
        """Its terms in all languages."""
        others = (other.term for word in self.words for other in word.others)
        return tuple(dict.fromkeys((*self.terms, *others)))

    def words_matched_by(self, terms: Set[str]) -> list[str]:
        """Those of its words that a text with these terms has."""
        return [word.text for word in self.words if word.is_held(terms)]

    def with_indexed_terms(self, holders: Mapping[str, int]) -> Question:
        return msgspec.structs.replace(
            self, words=tuple(word.with_indexed_terms(holders) for word in self.words)
        )


def analyse_query(text: str, languages: Sequence[str] = ()) -> Question:
    """A query to be asked of texts in English and in these languages.

    A query of one or two words does not show its own language. So each word is looked for by all the terms that it may
    have been indexed by; only function words are dropped by the language of the query.
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
    """What an ordinary word is indexed by in each language, with its accents and without them."""
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
    """The token's terms, but of an unspaced script only pairs of characters: single ones would match everywhere."""
    if language != ENGLISH and fold(token) in function_words(language):
        return ()  # those too that a text keeps: "not" says nothing about which memory is meant
    terms = terms_in(language)(token)
    if not unspaced_run.search(token):
        return terms
    runs = [fold(run) for run in unspaced_run.findall(token) if len(run) > 1]
    singles = {character for run in runs for character in run}
    return tuple(term for term in dict.fromkeys(terms) if term not in singles) or tuple(
        dict.fromkeys(terms)
    )
