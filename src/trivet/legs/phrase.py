"""Quoted words are exact: which memories hold them as they stand."""

from __future__ import annotations

from collections.abc import Sequence

from trivet.analyse import Question, analyse, contains_phrase, fold
from trivet.recipe import Recipe
from trivet.store.base import Store
from trivet.types import Filter, Memory, Ranking

# How many memories with all words of the phrases are read to see whether they hold them as phrases.
READ = 1_000


def phrase_holders(
    store: Store, question: Question, filter: Filter, recipe: Recipe, rankings: Sequence[Ranking]
) -> frozenset[str]:
    """Ids of the memories that hold every quoted phrase. Function words are in no index: there, what the legs found
    is read instead."""
    terms = tuple(dict.fromkeys(term for phrase in question.phrases for term in analyse(phrase)))
    if terms:
        found = store.lexical.search(terms, terms, 1, filter, recipe.bm25, READ)
    else:
        found = [candidate for ranking in rankings for candidate in ranking.candidates]
    memories = store.memories.get_many([candidate.id for candidate in found])
    return frozenset(id for id, memory in memories.items() if holds_phrases(memory, question))


def holds_phrases(memory: Memory, question: Question) -> bool:
    text = fold(f"{memory.title or ''}\n{memory.content}")
    return all(contains_phrase(text, phrase) for phrase in question.phrases)
