"""From the filters of a request to the Filter that every query carries.

A query as it is asked of a store: in English, and in the other languages that its memories are written in.

Quoted words are exact: which memories hold them as they stand.

A word of a query that no visible memory holds, and one that is a slip of the keyboard away.

`vualt paht` finds nothing by its words, and a model of meaning cuts it into syllables. Where memories hold a word that
differs by one letter, or by two that changed places, the query is asked with that word; the answer says so. A word that
the bundled model knows is none: whoever asks for the prize does not mean the price.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from string import ascii_lowercase, digits
from typing import TYPE_CHECKING, NamedTuple

from trivet.analyse import Question, Word, analyse, analyse_query, holds_phrase, tokens_of
from trivet.common.clock import parse_time_expression
from trivet.contract import Selection
from trivet.errors import InvalidInput
from trivet.models.vocabulary import is_known_word
from trivet.search.legs.lexical import NAME as LEXICAL
from trivet.search.recipe import Recipe
from trivet.settings import Settings
from trivet.types import Candidate, Filter, Memory, Ranking

if TYPE_CHECKING:
    from trivet.store import Store
    from trivet.store.records import Bm25


def build_filter(request: Selection, settings: Settings, viewer: str | None) -> Filter:
    unknown = sorted(set(request.category) - set(settings.categories))
    if unknown:
        known = ", ".join(settings.categories)
        raise InvalidInput(
            f"category: there is no {', '.join(unknown)}. The categories are {known}."
        )
    after, before = _time(request, "created_after"), _time(request, "created_before")
    if after is not None and before is not None and after >= before:
        raise InvalidInput(
            "created_after must be earlier than created_before; no memory can be in between otherwise."
        )
    return Filter(
        scope=request.scope,
        categories=tuple(sorted(set(request.category))),
        tags=tuple(sorted(set(request.tags))),
        states=tuple(sorted(set(request.state))) or Filter().states,
        source=request.source,
        created_after=after,
        created_before=before,
        as_of=_time(request, "as_of"),
        viewer=viewer,
    )


def _time(request: Selection, field: str) -> str | None:
    text: str | None = getattr(request, field)
    return None if text is None else parse_time_expression(text, field)


def ask(store: Store, text: str, filter: Filter, bm25: Bm25) -> Question:
    """The query's words with the terms that visible memories hold them by. `bm25` as in the search that follows."""
    question = analyse_query(text, store.lexical.languages(filter))
    if not question.others:
        return question
    return question.with_indexed_terms(store.lexical.holders(question.every_term, filter, bm25))


# How many memories with all words of the phrases are read to see whether they hold them as phrases.
MAX_PHRASE_CANDIDATES = 1_000


def keep_phrase_holders(
    store: Store, question: Question, filter: Filter, recipe: Recipe, rankings: Sequence[Ranking]
) -> list[Ranking]:
    """The rankings with those memories alone that hold every quoted phrase; empty if none does.

    The lexical ranking is made anew from all memories with the words, since one that holds them as a phrase may score
    below the depth of the leg. Function words are in no index: for them, what the legs found is read instead.
    """
    quoted = analyse_query("\n".join(question.phrases), question.languages)
    terms = quoted.terms
    if terms:
        found = store.lexical.search(
            terms, terms, 1, filter, recipe.bm25, MAX_PHRASE_CANDIDATES, quoted.others
        )
    else:
        found = [candidate for ranking in rankings for candidate in ranking.candidates]
    memories = store.memories.get_many([candidate.id for candidate in found])
    holders = {id for id, memory in memories.items() if holds_phrases(memory, question)}
    if not holders:
        return []
    anew = {LEXICAL: found} if terms else {}
    return [
        _keep(ranking, anew.get(ranking.leg, ranking.candidates), holders, recipe.depth)
        for ranking in rankings
    ]


def _keep(
    ranking: Ranking, candidates: Sequence[Candidate], holders: set[str], depth: int
) -> Ranking:
    kept = [candidate for candidate in candidates if candidate.id in holders][:depth]
    return Ranking(leg=ranking.leg, floor=ranking.floor, candidates=tuple(kept))


def holds_phrases(memory: Memory, question: Question) -> bool:
    text = f"{memory.title or ''}\n{memory.content}"
    return all(holds_phrase(text, phrase) for phrase in question.phrases)


# People seldom get the first letter wrong, and a vocabulary is read by its first two.
PREFIX_LETTERS = 2
# Shorter words have neighbours everywhere: `boat`, `boot`, `bolt`. Of these only letters that changed places count, and
# of a short stem the word it comes from must be longer.
MIN_WORD_LENGTH, MIN_SWAPPED_LENGTH, MIN_SHORT_STEM_WORD_LENGTH = 5, 4, 6
# Each costs a look into the vocabulary. A query of many unknown words is in another language or about another matter.
MAX_UNKNOWN_WORDS = 4

# What terms consist of where a query's words are ASCII: words are folded, and identifiers may have these within.
LETTERS = f"{ascii_lowercase}{digits}-_./:@#+\\"

_word = re.compile(r"\w+")


class SpellingCorrection(NamedTuple):
    text: str
    notes: tuple[str, ...] = ()


def correct_spelling(
    store: Store, question: Question, filter: Filter, bm25: Bm25
) -> SpellingCorrection:
    """The query with its slips mended, and what was done."""
    unknown = list(_unknown(store, question, filter, bm25))
    if not 0 < len(unknown) <= MAX_UNKNOWN_WORDS:
        return SpellingCorrection(question.text)
    meant = {
        word.text: found
        for word in unknown
        if (found := _correction_of(store, word, filter, bm25)) is not None
    }
    text = _word.sub(lambda match: meant.get(match[0], match[0]), question.text)
    return SpellingCorrection(
        text,
        tuple(
            f'no memory holds "{typed}"; searched for "{found}"' for typed, found in meant.items()
        ),
    )


def _unknown(store: Store, question: Question, filter: Filter, bm25: Bm25) -> Iterator[Word]:
    ordinary = [word for word in question.words if _is_ordinary(word)]
    if question.quoted_only or not ordinary:
        return
    terms = {word.text: (*word.terms, *(other.term for other in word.others)) for word in ordinary}
    held = store.lexical.holders(
        [term for listed in terms.values() for term in listed], filter, bm25
    )
    unheld = (word for word in ordinary if not any(held[term] for term in terms[word.text]))
    yield from (word for word in unheld if not is_known_word(word.text))


def _is_ordinary(word: Word) -> bool:
    """No identifier, number or name in another script, of which each letter counts."""
    return (
        len(word.text) >= MIN_SWAPPED_LENGTH
        and word.text.isascii()
        and word.text.isalpha()
        and len(word.terms) == 1
    )


def _correction_of(store: Store, word: Word, filter: Filter, bm25: Bm25) -> str | None:
    """The word nearest to it that most visible memories hold, as one of them writes it."""
    near = [
        term
        for term in _known(store, word)
        if any(is_typo(one, term, len(word.text)) for one in _variants(word))
    ]
    held = store.lexical.holders(near, filter, bm25) if near else {}
    best = max(near, key=lambda term: (held[term], term), default=None)
    if best is None or not held[best]:
        return None
    found = store.lexical.search([best], [], 1, filter, bm25, 1)
    return _as_written(store, found[0].id, best) if found else None


def _variants(word: Word) -> set[str]:
    return {word.text.lower(), word.terms[0]}


def _known(store: Store, word: Word) -> set[str]:
    """The terms that begin as it does, or would with its second letter gone or in the third's place.

    In a large store those alone that are a slip away: to look for each of these takes less than to read them all.
    """
    text = word.text.lower()
    starts = {text[:PREFIX_LETTERS], text[0] + text[2]}
    slips = {
        slip
        for typed in _variants(word)
        for slip in typos_of(typed)
        if slip[:PREFIX_LETTERS] in starts
    }
    held = store.lexical.terms_in_any_memory(slips)
    if held is not None:
        return held
    return {term for start in sorted(starts) for term in store.lexical.terms_from(start)}


def typos_of(typed: str) -> Iterator[str]:
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


def is_typo(typed: str, meant: str, length: int) -> bool:
    """Whether one letter is missing, wrong or too many, or two neighbours changed places, in a word of this length."""
    shorter = min(len(typed), len(meant))
    if typed == meant or abs(len(typed) - len(meant)) > 1 or shorter < MIN_SWAPPED_LENGTH:
        return False
    at = next((place for place in range(shorter) if typed[place] != meant[place]), shorter)
    if typed[at : at + 2] == meant[at : at + 2][::-1] and typed[at + 2 :] == meant[at + 2 :]:
        return True
    if shorter < MIN_WORD_LENGTH and length < MIN_SHORT_STEM_WORD_LENGTH:
        return False
    return typed[at + 1 :] in (meant[at + 1 :], meant[at:]) or typed[at:] == meant[at + 1 :]
