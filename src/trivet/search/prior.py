"""What happens to a fused score afterwards: the exact-match bonus and the importance prior."""

from __future__ import annotations

from collections.abc import Callable, Set

from trivet.analyse import NOT_ENGLISH, IndexedIdentifier, IndexedPhrase, PhraseSearch, Question, fold
from trivet.types import Memory

# A query of one common word is no evidence of an exact match.
SHORTEST_EXACT_QUERY = 8
# To look into a shorter text takes less than to read its terms.
LONG_TEXT = 2_000


class Exactness:
    """How literally memories hold one query, 0 to 1: a quoted phrase, the whole query, or its identifiers."""

    def __init__(self, question: Question, is_told_by_index: bool) -> None:
        """`is_told_by_index`: the terms that `of` gets are of all parts of a memory."""
        wholes = question.phrases
        self._has_whole_query = len(question.folded) >= SHORTEST_EXACT_QUERY
        if self._has_whole_query:
            wholes = (*wholes, question.folded)
        known = frozenset(question.every_term)
        indexed = [IndexedPhrase(whole) for whole in wholes]
        self._question, self._is_told_by_index = question, is_told_by_index
        self._identifiers = [IndexedIdentifier(word, known) for word in question.identifiers]
        self._wholes = [(one, one.terms & known) for one in indexed]

    def is_possible(self, held: Set[str]) -> bool:
        """Whether a memory that has these of the query's terms may be more than 0; of most, they tell that it is not.

        A title that is the whole query holds it as a phrase, unless the query is too short to be looked for as one.
        """
        if not self._is_told(held) or not self._has_whole_query:
            return True
        return any(within <= held for _, within in self._wholes) or bool(self._possible_identifiers(held))

    def needs_terms(self, memory: Memory, held: Set[str]) -> bool:
        """Whether a memory that has these of the query's terms may hold a phrase, and `of` looks at all of its own."""
        is_long = len(memory.content) > LONG_TEXT
        return is_long and self._is_told(held) and any(within <= held for _, within in self._wholes)

    def of(self, memory: Memory, held: Set[str], terms: Callable[[], str]) -> float:
        """`held` are those of the query's terms that the memory has, and `terms` all of its own, between spaces.

        Most memories lack some or have them elsewhere, and their texts are not read.
        """
        question = self._question
        if memory.title and fold(memory.title) == question.folded:
            return 1.0
        wholes, identifiers = self._possible_wholes(memory, held, terms), self._possible_identifiers(held)
        if not wholes and not identifiers:
            return 0.0
        text = PhraseSearch(f"{memory.title}\n{memory.content}" if memory.title else memory.content)
        if any(map(text.holds, wholes)):
            return 1.0
        return sum(map(text.holds, identifiers)) / max(1, len(question.identifiers))

    def _possible_identifiers(self, held: Set[str]) -> list[str]:
        is_told = self._is_told(held)
        return [one.folded for one in self._identifiers if not is_told or one.is_possible(held)]

    def _possible_wholes(self, memory: Memory, held: Set[str], terms: Callable[[], str]) -> list[str]:
        if not self._is_told(held):
            return [one.folded for one, _ in self._wholes]
        found = [one for one, within in self._wholes if within <= held]
        if found and len(memory.content) > LONG_TEXT:
            found = [one for one in found if one.may_stand_among(terms())]
        return [one.folded for one in found]

    def _is_told(self, held: Set[str]) -> bool:
        return self._is_told_by_index and NOT_ENGLISH not in held


def importance_prior(importance: float, weight: float) -> float:
    """A factor between 1 - weight and 1. It breaks near-ties; it never lifts what does not fit."""
    return (1 - weight) + weight * importance
