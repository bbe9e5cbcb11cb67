"""The lexical leg: BM25 over our analyser's terms."""

from __future__ import annotations

from trivet.analyse import Question, analyse, contains_phrase, fold
from trivet.recipe import Recipe
from trivet.store.base import Store
from trivet.types import Filter, Ranking

# With so many memories that hold every word, partial matches are left out of the ranking.
ENOUGH_WITH_ALL_WORDS = 10
# How many memories with all words of a phrase are read to see whether they hold it as a phrase.
PHRASE_DEPTH = 1_000


def lexical(store: Store, question: Question, filter: Filter, recipe: Recipe) -> Ranking:
    required = _required(question) if recipe.match == "all-then-any" else ()
    found = store.lexical.search(question.terms, required, ENOUGH_WITH_ALL_WORDS, filter, recipe.bm25, recipe.depth)
    return Ranking(leg="lexical", floor=0.0, candidates=tuple(found))


def phrase_holders(store: Store, question: Question, filter: Filter, recipe: Recipe) -> frozenset[str] | None:
    """Ids of the memories that hold every quoted phrase word for word; None if nothing was quoted."""
    if not question.phrases:
        return None
    terms = _phrase_terms(question)
    found = store.lexical.search(terms, terms, 1, filter, recipe.bm25, PHRASE_DEPTH)
    memories = store.memories.get_many([candidate.id for candidate in found])
    return frozenset(
        id
        for id, memory in memories.items()
        if all(contains_phrase(fold(f"{memory.title or ''}\n{memory.content}"), phrase) for phrase in question.phrases)
    )


def _required(question: Question) -> tuple[str, ...]:
    """One word of the query is held if its parts are: `camelCase` is found in "camel case"."""
    return tuple(dict.fromkeys(term for word in question.words for term in (word.terms[1:] or word.terms)))


def _phrase_terms(question: Question) -> tuple[str, ...]:
    return tuple(dict.fromkeys(term for phrase in question.phrases for term in analyse(phrase)))
