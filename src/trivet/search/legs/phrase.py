"""Quoted words are exact: which memories hold them as they stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trivet.analyse import Question, analyse_query, holds_phrase
from trivet.search.legs.lexical import NAME as LEXICAL
from trivet.search.recipe import Recipe
from trivet.types import Candidate, Filter, Memory, Ranking

if TYPE_CHECKING:
    from trivet.store import Store

# How many memories with all words of the phrases are read to see whether they hold them as phrases.
READ = 1_000


def only_holders(
    store: Store, question: Question, filter: Filter, recipe: Recipe, rankings: Sequence[Ranking]
) -> list[Ranking]:
    """The rankings with those memories alone that hold every quoted phrase; empty if none does.

    The lexical ranking is made anew from all memories with the words, since one that holds them as a phrase may score
    below the depth of the leg. Function words are in no index: for them, what the legs found is read instead.
    """
    quoted = analyse_query("\n".join(question.phrases), question.languages)
    terms = quoted.terms
    if terms:
        found = store.lexical.search(terms, terms, 1, filter, recipe.bm25, READ, quoted.others)
    else:
        found = [candidate for ranking in rankings for candidate in ranking.candidates]
    memories = store.memories.get_many([candidate.id for candidate in found])
    holders = {id for id, memory in memories.items() if holds_phrases(memory, question)}
    if not holders:
        return []
    anew = {LEXICAL: found} if terms else {}
    return [
        _narrowed(ranking, anew.get(ranking.leg, ranking.candidates), holders, recipe.depth) for ranking in rankings
    ]


def _narrowed(ranking: Ranking, candidates: Sequence[Candidate], holders: set[str], depth: int) -> Ranking:
    kept = [candidate for candidate in candidates if candidate.id in holders][:depth]
    return Ranking(leg=ranking.leg, floor=ranking.floor, candidates=tuple(kept))


def holds_phrases(memory: Memory, question: Question) -> bool:
    text = f"{memory.title or ''}\n{memory.content}"
    return all(holds_phrase(text, phrase) for phrase in question.phrases)
