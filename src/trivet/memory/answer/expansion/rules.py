"""Splits a question that asks for two things: comparisons by their sides, conjunctions by their clauses.

English, and careful: a split that is not plainly there is not made, since the whole question was asked already.
"""

from __future__ import annotations

import re

from trivet.analyse import analyse

MOST = 3

_QUESTION_WORD = (
    r"(?:who|whom|whose|what|when|where|why|which|how|did|does|do|is|are|was|were|can|could|should|will|has|have)"
)
_sentences = re.compile(r"(?<=[?!.;])\s+")
_clauses = re.compile(rf",?\s+(?:and|but|then|or)\s+(?={_QUESTION_WORD}\b)", re.IGNORECASE)
_COMPARISONS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        # "the difference between A and B", "compare A with B in speed"
        r"(?P<before>.*?)\b(?:differences? between|compar(?:e|ed|ing|ison of)|both|either|between)\s+"
        r"(?P<one>[^,;?]{1,80}?)\s+(?:and|with|to|or|against)\s+(?P<other>[^,;?]{1,80}?)(?P<after>\s+(?:in|at|for|on|of|when|by|about)\b.*|[,;?].*|)$",
        # "A versus B"
        r"(?P<before>)(?P<one>[^,;?]{1,80}?)\s+(?:vs\.?|versus|compared (?:to|with)|rather than|instead of)\s+"
        r"(?P<other>[^,;?]{1,80}?)(?P<after>[,;?].*|)$",
        # "which is older, A or B?"
        r"(?P<before>[^,;?]{3,200}),\s+(?P<one>[^,;?]{1,80}?)\s+or\s+(?P<other>[^,;?]{1,80}?)(?P<after>[,;?].*|)$",
    )
)


def parts_of(query: str) -> tuple[str, ...]:
    """The questions within a question, at most three; none if it asks for one thing."""
    found = _compared(query) or _asked_together(query)
    distinct = dict.fromkeys(part for part in found if analyse(part) and part.casefold() != query.casefold())
    return tuple(distinct)[:MOST] if len(distinct) > 1 else ()


def _compared(query: str) -> list[str]:
    if '"' in query:
        return []  # what is quoted must not be cut in two
    for comparison in _COMPARISONS:
        if match := comparison.fullmatch(query.strip()):
            before, after = match["before"].strip(" ,"), match["after"].strip(" ?!.,;")
            return [" ".join(f"{before} {side.strip()} {after}".split()) for side in (match["one"], match["other"])]
    return []


def _asked_together(query: str) -> list[str]:
    if '"' in query:
        return []
    sentences = [part for part in _sentences.split(query.strip()) if part]
    return [clause.strip(" ,") for sentence in sentences for clause in _clauses.split(sentence) if clause.strip(" ,")]
