"""A word of a query that no visible memory holds, and one that is a slip of the keyboard away.

`vualt paht` finds nothing by its words, and a model of meaning cuts it into syllables. Where memories hold a word that
differs by one letter, or by two that changed places, the query is asked with that word; the answer says so. A word that
the bundled model knows is none: whoever asks for the prize does not mean the price.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import ascii_lowercase, digits
from typing import TYPE_CHECKING, NamedTuple

from trivet.analyse import Question, Word, analyse, tokens_of
from trivet.models.known_words import is_known_word
from trivet.types import Filter

if TYPE_CHECKING:
    from trivet.store import Store
    from trivet.store.records import Bm25

# People seldom get the first letter wrong, and a vocabulary is read by its first two.
FIRST_LETTERS = 2
# Shorter words have neighbours everywhere: `boat`, `boot`, `bolt`. Of these only letters that changed places count, and
# of a short stem the word it comes from must be longer.
SHORTEST, SHORTEST_SWAPPED, SHORTEST_OF_SHORT_STEM = 5, 4, 6
# Each costs a look into the vocabulary. A query of many unknown words is in another language or about another matter.
MOST_WORDS = 4

# What terms consist of where a query's words are ASCII: words are folded, and identifiers may have these within.
LETTERS = f"{ascii_lowercase}{digits}-_./:@#+\\"

_word = re.compile(r"\w+")


class Respelled(NamedTuple):
    text: str
    notes: tuple[str, ...] = ()


def respelled(store: Store, question: Question, filter: Filter, bm25: Bm25) -> Respelled:
    """The query with its slips mended, and what was done."""
    unknown = list(_unknown(store, question, filter, bm25))
    if not 0 < len(unknown) <= MOST_WORDS:
        return Respelled(question.text)
    meant = {word.text: found for word in unknown if (found := _meant(store, word, filter, bm25)) is not None}
    text = _word.sub(lambda match: meant.get(match[0], match[0]), question.text)
    return Respelled(
        text, tuple(f'no memory holds "{typed}"; searched for "{found}"' for typed, found in meant.items())
    )


def _unknown(store: Store, question: Question, filter: Filter, bm25: Bm25) -> Iterator[Word]:
    ordinary = [word for word in question.words if _is_ordinary(word)]
    if question.quoted_only or not ordinary:
        return
    terms = {word.text: (*word.terms, *(other.term for other in word.others)) for word in ordinary}
    held = store.lexical.holders([term for listed in terms.values() for term in listed], filter, bm25)
    unheld = (word for word in ordinary if not any(held[term] for term in terms[word.text]))
    yield from (word for word in unheld if not is_known_word(word.text))


def _is_ordinary(word: Word) -> bool:
    """No identifier, number or name in another script, of which each letter counts."""
    return len(word.text) >= SHORTEST_SWAPPED and word.text.isascii() and word.text.isalpha() and len(word.terms) == 1


def _meant(store: Store, word: Word, filter: Filter, bm25: Bm25) -> str | None:
    """The word nearest to it that most visible memories hold, as one of them writes it."""
    near = [term for term in _known(store, word) if any(is_slip(one, term, len(word.text)) for one in _typed(word))]
    held = store.lexical.holders(near, filter, bm25) if near else {}
    best = max(near, key=lambda term: (held[term], term), default=None)
    if best is None or not held[best]:
        return None
    found = store.lexical.search([best], [], 1, filter, bm25, 1)
    return _as_written(store, found[0].id, best) if found else None


def _typed(word: Word) -> set[str]:
    return {word.text.lower(), word.terms[0]}


def _known(store: Store, word: Word) -> set[str]:
    """The terms that begin as it does, or would with its second letter gone or in the third's place.

    In a large store those alone that are a slip away: to look for each of these takes less than to read them all.
    """
    text = word.text.lower()
    starts = {text[:FIRST_LETTERS], text[0] + text[2]}
    slips = {slip for typed in _typed(word) for slip in slips_of(typed) if slip[:FIRST_LETTERS] in starts}
    held = store.lexical.held_by_any(slips)
    if held is not None:
        return held
    return {term for start in sorted(starts) for term in store.lexical.terms_from(start)}


def slips_of(typed: str) -> Iterator[str]:
    """Everything with one letter less, wrong or more, or with two neighbours in each other's place."""
    for at in range(len(typed) + 1):
        before, rest = typed[:at], typed[at:]
        yield from (before + letter + rest for letter in LETTERS)
        if rest:
            yield before + rest[1:]
            yield from (before + letter + rest[1:] for letter in LETTERS)
            yield before + rest[:2][::-1] + rest[2:]


def _as_written(store: Store, id: str, term: str) -> str | None:
    memory = store.memories.get_many([id]).get(id)
    if memory is None or memory.sensitive:  # gone since; or a word that is masked everywhere else
        return None
    tokens = tokens_of(f"{memory.title or ''} {memory.content}")
    return next((token for token in tokens if analyse(token) == (term,)), None)


def is_slip(typed: str, meant: str, length: int) -> bool:
    """Whether one letter is missing, wrong or too many, or two neighbours changed places, in a word of this length."""
    shorter = min(len(typed), len(meant))
    if typed == meant or abs(len(typed) - len(meant)) > 1 or shorter < SHORTEST_SWAPPED:
        return False
    at = next((place for place in range(shorter) if typed[place] != meant[place]), shorter)
    if typed[at : at + 2] == meant[at : at + 2][::-1] and typed[at + 2 :] == meant[at + 2 :]:
        return True
    if shorter < SHORTEST and length < SHORTEST_OF_SHORT_STEM:
        return False
    return typed[at + 1 :] in (meant[at + 1 :], meant[at:]) or typed[at:] == meant[at + 1 :]
