"""A query as it is asked of a store: in English, and in the other languages that its memories are written in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trivet.analyse import Question, analyse_query
from trivet.types import Filter

if TYPE_CHECKING:
    from trivet.store import Store
    from trivet.store.records import Bm25


def ask(store: Store, text: str, filter: Filter, bm25: Bm25) -> Question:
    """The query's words with the terms that visible memories hold them by. `bm25` as in the search that follows."""
    question = analyse_query(text, store.lexical.languages(filter))
    if not question.others:
        return question
    return question.as_held(store.lexical.holders(question.every_term, filter, bm25))
