"""How a memory's own words answer the query's: as named numbers, beside what the legs say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from trivet.analyse import NOT_ENGLISH, Question, Word
from trivet.search.indexed_texts import IndexedTexts
from trivet.search.prior import Exactness
from trivet.types import Filter, Memory

if TYPE_CHECKING:
    from trivet.store import Store
    from trivet.store.records import Bm25

WORDING_FEATURES: tuple[str, ...] = (
    "coverage",  # the share of the query's words that it holds, rare ones counting for more
    "rarest",  # how rare the rarest of those is
    "pairs",  # the share of the query's neighbouring words that stand side by side in it too
    "exact",  # as in the exact-match bonus
    "known",  # of the query: the share of its words, as above, that any memory holds
    "words",  # of the query: how many, as a logarithm
)


class Wording:
    """Of one query; each memory is looked at once. What a memory holds is what the lexical index says it holds."""

    def __init__(self, store: Store, question: Question, filter: Filter, bm25: Bm25, texts: IndexedTexts) -> None:
        self._store, self._question, self._bm25, self._texts = store, question, bm25, texts
        holders = store.lexical.holders(question.terms, filter, bm25) if question.words else {}
        memories = store.memories.visible_count(filter)
        self._rarity = {word.text: _rarity(word, holders, memories) for word in question.words}
        self._total = math.fsum(self._rarity.values())
        self._rarest_possible = math.log1p(2 * memories) or 1.0
        self._pairs = list(pairwise([word.terms[0] for word in question.words]))
        known = math.fsum(self._rarity[word.text] for word in question.words if holders.get(word.terms[0], 0))
        self._known = known / self._total if self._total else 0.0
        self._length = math.log1p(len(question.words))
        # Where there are memories in other languages, each says by a term of its own that it is one of them.
        self._terms = (*question.every_term, NOT_ENGLISH) if question.languages else question.every_term
        self._held: dict[str, frozenset[str]] = {}
        self._words: dict[str, list[str]] = {}
        self._exactness = Exactness(question, bool(bm25.content and bm25.title and bm25.keywords))
        self._exact: dict[str, float] = {}

    def look_up(self, ids: Iterable[str]) -> None:
        """Which of the query's terms they hold, of all at once that are going to be asked for."""
        missing = [id for id in ids if id not in self._held]
        if missing:
            self._held |= self._store.lexical.held(self._terms, missing, self._bm25)

    def may_be_exact(self, id: str) -> bool:
        """Whether the memory may hold the query literally, as far as its terms tell, without reading it."""
        self.look_up((id,))
        return self._exactness.is_possible(self._held[id])

    def look_into(self, memories: Sequence[Memory]) -> None:
        """Reads all at once what is needed to tell how literally they hold the query."""
        self.look_up(memory.id for memory in memories)
        unknown = (memory for memory in memories if memory.id not in self._exact)
        self._texts.read(one for one in unknown if self._exactness.needs_terms(one, self._held[one.id]))

    def read(self, memories: Sequence[Memory]) -> None:
        """The same, and the terms in their order of those in which some may stand side by side."""
        self.look_into(memories)
        if self._pairs:
            self._texts.read(memory for memory in memories if self._pairs_held(memory))

    def words_held(self, memory: Memory) -> list[str]:
        """Those of the query's words that the memory has."""
        found = self._words.get(memory.id)
        if found is None:
            found = self._words[memory.id] = self._question.words_held(self._terms_held(memory))
        return found

    def exactness(self, memory: Memory) -> float:
        found = self._exact.get(memory.id)
        if found is None:
            held = self._terms_held(memory)
            found = self._exact[memory.id] = self._exactness.of(memory, held, lambda: self._in_order(memory))
        return found

    def _terms_held(self, memory: Memory) -> frozenset[str]:
        if memory.id not in self._held:
            self.look_up((memory.id,))
        return self._held[memory.id]

    def _pairs_held(self, memory: Memory) -> list[tuple[str, str]]:
        held = self._terms_held(memory)
        return [pair for pair in self._pairs if pair[0] in held and pair[1] in held]

    def of(self, memory: Memory) -> dict[str, float]:
        covered = [self._rarity[word] for word in self.words_held(memory)]
        return {
            "coverage": math.fsum(covered) / self._total if self._total else 0.0,
            "rarest": max(covered, default=0.0) / self._rarest_possible,
            "pairs": self._side_by_side(memory) / len(self._pairs) if self._pairs else 0.0,
            "exact": self.exactness(memory),
            "known": self._known,
            "words": self._length,
        }

    def _side_by_side(self, memory: Memory) -> int:
        pairs = self._pairs_held(memory)
        if not pairs:
            return 0
        text = self._in_order(memory)
        return sum(f" {one} {other} " in text for one, other in pairs)

    def _in_order(self, memory: Memory) -> str:
        """Its terms as it is read, each between two spaces."""
        content, title = self._texts.of(memory)
        return f" {title} {content} " if title else f" {content} "


def _rarity(word: Word, holders: Mapping[str, int], memories: int) -> float:
    """What holding the word tells: much where few memories hold its most specific term, little where all do."""
    return math.log1p(memories / (0.5 + holders.get(word.terms[0], 0)))
