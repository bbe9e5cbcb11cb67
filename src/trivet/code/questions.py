"""What can be asked of a code index, as values: a question crosses to the resident process, and its answer back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from trivet.code.types import CodeAnswer, CodeFilters

if TYPE_CHECKING:
    from trivet.code.code_index import CodeIndex

DEFAULT_LIMIT = 10
# About a screen of code for each of the first hits: what a person looks through, or an agent can afford to read.
DEFAULT_BUDGET = 1_500


class Search(msgspec.Struct, frozen=True, kw_only=True, tag="search"):
    query: str
    limit: int = DEFAULT_LIMIT
    filters: CodeFilters = CodeFilters()
    recipe: str = "default"
    budget: int | None = DEFAULT_BUDGET


class Symbol(msgspec.Struct, frozen=True, kw_only=True, tag="symbol"):
    name: str
    limit: int = DEFAULT_LIMIT
    budget: int | None = None


class Related(msgspec.Struct, frozen=True, kw_only=True, tag="related"):
    place: str
    limit: int = DEFAULT_LIMIT
    budget: int | None = None


Question = Search | Symbol | Related


def answer(index: CodeIndex, question: Question) -> CodeAnswer:
    """What the index says as it stands; the caller has refreshed it."""
    match question:
        case Search():
            return index.search(
                question.query,
                limit=question.limit,
                filters=question.filters,
                recipe=question.recipe,
                budget=question.budget,
            )
        case Symbol():
            return index.symbol(question.name, question.limit, question.budget)
        case Related():
            return index.related(question.place, question.limit, question.budget)
