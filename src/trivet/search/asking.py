"""A query as it is asked of a store: in English, and in the other languages that its memories are written in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trivet.analyse import LANGUAGES, NOT_ENGLISH, Question, analyse_query, mark
from trivet.search.recipe import DEFAULT
from trivet.types import Filter

if TYPE_CHECKING:
    from trivet.store import Store


def ask(store: Store, text: str, filter: Filter) -> Question:
    """The query's words with the terms that the visible memories hold them by, the commonest first."""
    question = analyse_query(text, languages_of(store, filter))
    if not question.others:
        return question
    return question.by_holders(store.lexical.holders(question.every_term, filter, DEFAULT.bm25))


def languages_of(store: Store, filter: Filter) -> tuple[str, ...]:
    """The languages other than English of the visible memories."""
    # Most stores have none, and asking for all of them would cost more than the rest of the analysis.
    if not store.lexical.holders([NOT_ENGLISH], filter, DEFAULT.bm25)[NOT_ENGLISH]:
        return ()
    held = store.lexical.holders([mark(language) for language in LANGUAGES], filter, DEFAULT.bm25)
    return tuple(language for language in LANGUAGES if held[mark(language)])
