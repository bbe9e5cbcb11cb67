"""The lexical leg: BM25 over the terms of Trivet's analyzer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trivet.search.legs.leg import Leg, LegQuery, always
from trivet.types import Contribution, Ranking, Why

if TYPE_CHECKING:
    from trivet.analyse import Question

NAME = "lexical"
FLOOR = 0.0
# With this many memories that hold every word, partial matches are left out.
MIN_FULL_MATCHES = 10


def _search(query: LegQuery) -> Ranking:
    recipe, question = query.recipe, query.question
    required = _required(question) if recipe.match == "all-then-any" else ()
    found = query.store.lexical.search(
        question.terms,
        required,
        MIN_FULL_MATCHES,
        query.filter,
        recipe.bm25,
        recipe.depth,
        question.others,
    )
    return Ranking(leg=NAME, floor=FLOOR, candidates=tuple(found))


def _required(question: Question) -> tuple[str, ...]:
    """Require a compound's parts only, so that `camelCase` finds "camel case"."""
    return tuple(
        dict.fromkeys(term for word in question.words for term in (word.terms[1:] or word.terms))
    )


def _explain(part: Contribution, why: Why) -> str:
    return f"matched: {', '.join(why.matched_words)}" if why.matched_words else ""


LEXICAL = Leg(
    name=NAME,
    search=_search,
    floor=FLOOR,
    in_callers_thread=always,  # it holds the interpreter and waits for nothing
    finds_exact_matches=True,
    trust=1 / 9,  # the default fusion's weight, whatever the recipe's own is
    steps=("match", "bm25"),
    features={
        NAME: "log_score",
        f"{NAME}_spread": "normalised",
        f"{NAME}_rank": "place",
        f"{NAME}_gap": "gap",
        f"{NAME}_silent": "silent",
    },
    unit="BM25, no unit",
    explain=_explain,
)
