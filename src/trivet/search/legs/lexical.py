"""The lexical leg: BM25 over our analyser's terms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trivet.analyse import Question
from trivet.search.recipe import Recipe
from trivet.types import Filter, Ranking

if TYPE_CHECKING:
    from trivet.store import Store

# With so many memories that hold every word, partial matches are left out of the ranking.
ENOUGH_WITH_ALL_WORDS = 10


def lexical(store: Store, question: Question, filter: Filter, recipe: Recipe) -> Ranking:
    required = _required(question) if recipe.match == "all-then-any" else ()
    found = store.lexical.search(question.terms, required, ENOUGH_WITH_ALL_WORDS, filter, recipe.bm25, recipe.depth)
    return Ranking(leg="lexical", floor=0.0, candidates=tuple(found))


def _required(question: Question) -> tuple[str, ...]:
    """One word of the query is held if its parts are: `camelCase` is found in "camel case"."""
    return tuple(dict.fromkeys(term for word in question.words for term in (word.terms[1:] or word.terms)))
