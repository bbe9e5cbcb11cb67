"""What happens to a fused score afterwards: the exact-match bonus and the importance prior."""

from __future__ import annotations

from collections.abc import Set

from trivet.analyse import PhraseSearch, Question, fold, terms_within
from trivet.types import Memory

# A query of one common word is no evidence of an exact match.
SHORTEST_EXACT_QUERY = 8
_NOTHING: frozenset[str] = frozenset()


class Exactness:
    """How literally memories hold one query, 0 to 1: a quoted phrase, the whole query, or its identifiers."""

    def __init__(self, question: Question, every_word_told: bool) -> None:
        """`every_word_told`: the terms that `of` gets tell all words of a text, since all texts are English."""
        wholes = question.phrases
        if len(question.folded) >= SHORTEST_EXACT_QUERY:
            wholes = (*wholes, question.folded)
        known = frozenset(question.every_term)
        self._question = question
        self._wholes = [(whole, terms_within(whole) & known if every_word_told else _NOTHING) for whole in wholes]

    def of(self, memory: Memory, held: Set[str]) -> float:
        """`held` are those of the query's terms that the memory has: most lack one, and are not read."""
        question = self._question
        if memory.title and fold(memory.title) == question.folded:
            return 1.0
        wholes = [whole for whole, within in self._wholes if within <= held]
        if not wholes and not question.identifiers:
            return 0.0
        text = PhraseSearch(f"{memory.title}\n{memory.content}" if memory.title else memory.content)
        if any(map(text.holds, wholes)):
            return 1.0
        return sum(map(text.holds, question.identifiers)) / max(1, len(question.identifiers))


def importance_prior(importance: float, weight: float) -> float:
    """A factor between 1 - weight and 1. It breaks near-ties; it never lifts what does not fit."""
    return (1 - weight) + weight * importance
