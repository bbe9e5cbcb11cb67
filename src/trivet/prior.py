"""What happens to a fused score afterwards: the exact-match bonus and the importance prior."""

from __future__ import annotations

from trivet.analyse import Question, contains_phrase, fold
from trivet.types import Memory

# A query of one common word is no evidence of an exact match.
SHORTEST_EXACT_QUERY = 8


def exactness(question: Question, memory: Memory) -> float:
    """How literally the memory holds the query, 0 to 1: a quoted phrase, the whole query, or its identifiers."""
    could_hold_all = SHORTEST_EXACT_QUERY <= len(question.folded) <= len(memory.content)
    if not (could_hold_all or question.phrases or question.identifiers or memory.title):
        return 0.0  # most queries are longer than that and quote nothing: do not fold every candidate for them
    title, content = fold(memory.title or ""), fold(memory.content)
    if question.folded == title:
        return 1.0
    text = f"{title}\n{content}"
    wholes = (*question.phrases, question.folded) if could_hold_all else question.phrases
    if any(contains_phrase(text, whole) for whole in wholes):
        return 1.0
    if not question.identifiers:
        return 0.0
    return sum(contains_phrase(text, identifier) for identifier in question.identifiers) / len(question.identifiers)


def with_bonus(score: float, exactness: float, bonus: float) -> float:
    """Adds the bonus and keeps the score on 0..1 without changing the order of the rest."""
    return (score + bonus * exactness) / (1 + bonus)


def importance_prior(importance: float, weight: float) -> float:
    """A factor between 1 - weight and 1. It breaks near-ties; it never lifts what does not fit."""
    return (1 - weight) + weight * importance
