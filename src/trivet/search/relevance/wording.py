"""How a memory's own words answer the query's: as named numbers, beside what the legs say."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise

from trivet.analyse import Question, Word, analyse
from trivet.search.prior import exactness
from trivet.types import Memory

WORDING_FEATURES: tuple[str, ...] = (
    "coverage",  # the share of the query's words that it holds, rare ones counting for more
    "rarest",  # how rare the rarest of those is
    "pairs",  # the share of the query's neighbouring words that stand side by side in it too
    "exact",  # as in the exact-match bonus
    "known",  # of the query: the share of its words, as above, that any memory holds
    "words",  # of the query: how many, as a logarithm
)


class Wording:
    """Made once for a query. `holders` is how many of `memories` hold each of its terms."""

    def __init__(self, question: Question, holders: Mapping[str, int], memories: int) -> None:
        self._question = question
        self._rarity = {word.text: _rarity(word, holders, memories) for word in question.words}
        self._total = math.fsum(self._rarity.values())
        self._rarest_possible = math.log1p(2 * memories) or 1.0
        asked = [word.terms[0] for word in question.words]
        self._pairs = list(pairwise(asked))
        known = math.fsum(self._rarity[word.text] for word in question.words if holders.get(word.terms[0], 0))
        self._known = known / self._total if self._total else 0.0

    def of(self, memory: Memory) -> dict[str, float]:
        terms = analyse(f"{memory.title}\n{memory.content}" if memory.title else memory.content)
        held = {*terms, *analyse(_around(memory))}
        covered = [self._rarity[word] for word in self._question.words_held(held)]
        beside = set(pairwise(terms)) if self._pairs else set()
        return {
            "coverage": math.fsum(covered) / self._total if self._total else 0.0,
            "rarest": max(covered, default=0.0) / self._rarest_possible,
            "pairs": sum(pair in beside for pair in self._pairs) / len(self._pairs) if self._pairs else 0.0,
            "exact": exactness(self._question, memory),
            "known": self._known,
            "words": math.log1p(len(self._question.words)),
        }


def _rarity(word: Word, holders: Mapping[str, int], memories: int) -> float:
    """What holding the word tells: much where few memories hold its most specific term, little where all do."""
    return math.log1p(memories / (0.5 + holders.get(word.terms[0], 0)))


def _around(memory: Memory) -> str:
    return " ".join((*memory.expanded_keywords, *memory.tags, memory.category))
