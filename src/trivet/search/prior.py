"""What happens to a fused score afterwards: the exact-match bonus and the importance prior."""

from __future__ import annotations

from trivet.analyse import Question, contains_phrase, fold
from trivet.types import Memory

# A query of one common word is no evidence of an exact match.
SHORTEST_EXACT_QUERY = 8


def exactness(question: Question, memory: Memory) -> float:
    """How literally the memory holds the query, 0 to 1: a quoted phrase, the whole query, or its identifiers."""
    if memory.title and fold(memory.title) == question.folded:
        return 1.0
    wholes = question.phrases
    if len(question.folded) >= SHORTEST_EXACT_QUERY:
        wholes = (*wholes, question.folded)
    if any(_holds(memory, whole) for whole in wholes):
        return 1.0
    if not question.identifiers:
        return 0.0
    return sum(_holds(memory, identifier) for identifier in question.identifiers) / len(question.identifiers)


def _holds(memory: Memory, folded: str) -> bool:
    text = f"{memory.title}\n{memory.content}" if memory.title else memory.content
    # Folding every candidate would cost more than the rest of the scoring; one missing word settles it.
    return _may_hold(text, folded) and contains_phrase(fold(text), folded)


def _may_hold(text: str, folded: str) -> bool:
    """Whether every word of a phrase is in the folded text, without folding more than what is not ASCII."""
    lower, apart = text.lower(), None
    for word in reversed(folded.split(" ")):  # the last often ends in a question mark, which settles most
        if word not in lower:
            if text.isascii():
                return False
            apart = [fold(part) for part in text.split() if not part.isascii()] if apart is None else apart
            if not any(word in part for part in apart):
                return False
    return True


def importance_prior(importance: float, weight: float) -> float:
    """A factor between 1 - weight and 1. It breaks near-ties; it never lifts what does not fit."""
    return (1 - weight) + weight * importance
