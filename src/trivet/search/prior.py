"""What happens to a fused score afterwards: the exact-match bonus and the importance prior."""

from __future__ import annotations

from trivet.analyse import Question, fold, holds_phrase
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
    return holds_phrase(f"{memory.title}\n{memory.content}" if memory.title else memory.content, folded)


def importance_prior(importance: float, weight: float) -> float:
    """A factor between 1 - weight and 1. It breaks near-ties; it never lifts what does not fit."""
    return (1 - weight) + weight * importance
