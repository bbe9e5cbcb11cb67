"""A request becomes a query: filter, search terms, quoted phrases, and spelling corrections.

A query word that no visible memory holds (`vualt paht`) is corrected to an indexed word one typo
away, unless the bundled model knows it ("prize" does not mean "price").
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from string import ascii_lowercase, digits
from typing import TYPE_CHECKING, NamedTuple

from trivet.analyse import Question, Word, analyse, analyse_query, holds_phrase, tokens_of
from trivet.common.clock import parse_time_expression
from trivet.contract import FilterParameters
from trivet.errors import InvalidInput
from trivet.models.vocabulary import is_known_word
from trivet.search.legs.lexical import NAME as LEXICAL
from trivet.search.recipe import Recipe
from trivet.settings import Settings
from trivet.types import Candidate, Filter, Memory, Ranking

if TYPE_CHECKING:
    from trivet.store import Store
    from trivet.store.records import Bm25


def build_filter(request: FilterParameters, settings: Settings, viewer: str | None) -> Filter:
    unknown = sorted(set(request.category) - set(settings.categories))
    if unknown:
        known = ", ".join(settings.categories)
        raise InvalidInput(
            f"category: unknown category {', '.join(unknown)}. The categories are {known}."
        )
    after, before = _time(request, "created_after"), _time(request, "created_before")
    if after is not None and before is not None and after >= before:
        raise InvalidInput(
            "created_after must be earlier than created_before; otherwise no memory matches."
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


def _time(request: FilterParameters, field: str) -> str | None:
    text: str | None = getattr(request, field)
    return None if text is None else parse_time_expression(text, field)


def ask(store: Store, text: str, filter: Filter, bm25: Bm25) -> Question:
    question = analyse_query(text, store.lexical.languages(filter))
    if not question.others:
        return question
    return question.with_indexed_terms(store.lexical.holders(question.every_term, filter, bm25))


MAX_PHRASE_CANDIDATES = 1_000


def keep_phrase_holders(
    store: Store, question: Question, filter: Filter, recipe: Recipe, rankings: Sequence[Ranking]
) -> list[Ranking]:
    """Return only memories that hold every quoted phrase; empty if none does.

    Function words are not indexed: for them, only what the legs found is read.
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


# Letters of the prefix by which the vocabulary is read; the first letter is rarely wrong.
PREFIX_LETTERS = 2
# Short words have many neighbors (`boat`, `boot`, `bolt`): for these only transpositions count, and
# a short stem must come from a longer word.
MIN_WORD_LENGTH, MIN_SWAPPED_LENGTH, MIN_SHORT_STEM_WORD_LENGTH = 5, 4, 6
# Each costs a lookup. A query with more unknown words is in another language.
MAX_UNKNOWN_WORDS = 4

# Characters of the terms of an ASCII query.
LETTERS = f"{ascii_lowercase}{digits}-_./:@#+\\"

_word = re.compile(r"\w+")


class SpellingCorrection(NamedTuple):
    text: str
    notes: tuple[str, ...] = ()


def correct_spelling(
    store: Store, question: Question, filter: Filter, bm25: Bm25
) -> SpellingCorrection:
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
    """Exclude words in which each letter counts, such as identifiers."""
    return (
        len(word.text) >= MIN_SWAPPED_LENGTH
        and word.text.isascii()
        and word.text.isalpha()
        and len(word.terms) == 1
    )


def _correction_of(store: Store, word: Word, filter: Filter, bm25: Bm25) -> str | None:
    """Return the closest word in most visible memories, as written there."""
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
    """Yield every string one insertion, deletion, substitution or swap away."""
    for at in range(len(typed) + 1):
        before, rest = typed[:at], typed[at:]
        yield from (before + letter + rest for letter in LETTERS)
        if rest:
            yield before + rest[1:]
            yield from (before + letter + rest[1:] for letter in LETTERS)
            yield before + rest[:2][::-1] + rest[2:]


def _as_written(store: Store, id: str, term: str) -> str | None:
    memory = store.memories.get_many([id]).get(id)
    # deleted meanwhile, or a word that is masked everywhere else
    if memory is None or memory.sensitive:
        return None
    tokens = tokens_of(f"{memory.title or ''} {memory.content}")
    return next((token for token in tokens if analyse(token) == (term,)), None)


def is_typo(typed: str, meant: str, length: int) -> bool:
    """Return whether two words differ by one typo; `length` is that of the unstemmed word."""
    shorter = min(len(typed), len(meant))
    if typed == meant or abs(len(typed) - len(meant)) > 1 or shorter < MIN_SWAPPED_LENGTH:
        return False
    at = next((place for place in range(shorter) if typed[place] != meant[place]), shorter)
    if typed[at : at + 2] == meant[at : at + 2][::-1] and typed[at + 2 :] == meant[at + 2 :]:
        return True
    if shorter < MIN_WORD_LENGTH and length < MIN_SHORT_STEM_WORD_LENGTH:
        return False
    return typed[at + 1 :] in (meant[at + 1 :], meant[at:]) or typed[at:] == meant[at + 1 :]
