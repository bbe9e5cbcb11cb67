"""Features for the relevance model: fused position, leg rankings, and text match."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

from trivet.analyse import NOT_ENGLISH, Question, Word, analyse
from trivet.search.fuse.methods import NORMALISERS
from trivet.search.legs.leg import Leg, Measure
from trivet.search.legs.registry import legs
from trivet.search.recipe import Recipe
from trivet.search.relevance import Exactness
from trivet.store.records import IndexedText
from trivet.types import Filter, Fused, Memory, Ranking

if TYPE_CHECKING:
    from trivet.store import Store
    from trivet.store.records import Bm25


class IndexedTexts:
    """Terms of candidates from the index, much faster than analysis."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, IndexedText] = {}

    def read(self, memories: Iterable[Memory]) -> None:
        missing = [memory for memory in memories if memory.id not in self._known]
        if not missing:
            return
        found = self._store.memories.terms_of([memory.id for memory in missing])
        for memory in missing:
            self._known[memory.id] = found.get(memory.id) or _analysed(memory)

    def of(self, memory: Memory) -> IndexedText:
        self.read((memory,))
        return self._known[memory.id]


def _analysed(memory: Memory) -> IndexedText:
    """Analyze a memory that the index lacks, which `doctor` reports."""
    return IndexedText(" ".join(analyse(memory.content)), " ".join(analyse(memory.title or "")))


# Lower candidates hardly ever belong to an answer.
HEAD = 50
# A rank counts 10 / (10 + rank), so that only the first few differ much.
PLACE_CONSTANT = 10.0
AGREED_HEAD = 10


def feature_names() -> tuple[str, ...]:
    return (
        "fixed",  # z-score of the fused score in the head
        "first",  # 1 / rank
        "legs_agree",  # of the query: the share of top hits that the legs have in common
        *(name for leg in legs() for name in leg.features),
        *TEXT_MATCH_FEATURES,
    )


class Evidence:
    def __init__(
        self,
        store: Store,
        question: Question,
        filter: Filter,
        recipe: Recipe,
        fused: Sequence[Fused],
        rankings: Sequence[Ranking],
        texts: IndexedTexts | None = None,
    ) -> None:
        self.texts = texts or IndexedTexts(store)
        self._store, self._question, self._filter, self._recipe = store, question, filter, recipe
        by_score = sorted(fused, key=lambda hit: -hit.score)[
            :HEAD
        ]  # stable sort: ties keep the fused order
        self._places = {hit.id: place for place, hit in enumerate(by_score)}
        self._scores = [hit.score for hit in by_score]
        self._rankings = rankings
        self._known: dict[tuple[str, str], dict[str, float]] = {}

    def of(self, id: str, memory: Memory) -> dict[str, float] | None:
        """Return a candidate's features; None below the first `HEAD`."""
        place = self._places.get(id)
        if place is None:
            return None
        if (id, memory.id) not in self._known:  # requested twice if the first look was unsure
            self._known[id, memory.id] = self._measured(id, memory, place)
        return self._known[id, memory.id]

    def _measured(self, id: str, memory: Memory, place: int) -> dict[str, float]:
        known = {
            "fixed": self._deviations[place],
            "first": 1.0 / (place + 1),
            "legs_agree": self._agreement,
        }
        for leg in self._legs:
            known |= leg.features(id)
        return known | self.wording.of(memory)

    @cached_property
    def _legs(self) -> list[RankedLeg]:
        found = {ranking.leg: ranking for ranking in self._rankings}
        return [RankedLeg(leg, found.get(leg.name)) for leg in legs() if leg.features]

    @cached_property
    def _deviations(self) -> list[float]:
        scores = self._scores
        mean = math.fsum(scores) / len(scores)
        sigma = math.sqrt(math.fsum((score - mean) ** 2 for score in scores) / len(scores))
        return [(score - mean) / sigma if sigma else 0.0 for score in scores]

    @cached_property
    def _agreement(self) -> float:
        trusted = {leg.name for leg in legs() if leg.trust}
        heads = [
            {candidate.id for candidate in ranking.candidates[:AGREED_HEAD]}
            for ranking in self._rankings
            if ranking.leg in trusted
        ]
        return len(set.intersection(*heads)) / AGREED_HEAD if len(heads) > 1 else 0.0

    @cached_property
    def wording(self) -> TextMatch:
        return TextMatch(self._store, self._question, self._filter, self._recipe.bm25, self.texts)


class RankedLeg:
    """Measures of one leg's ranking, all 0 without hits except for `silent`."""

    def __init__(self, leg: Leg, ranking: Ranking | None) -> None:
        candidates = ranking.candidates if ranking is not None else ()
        self._places = {candidate.id: place for place, candidate in enumerate(candidates)}
        self._scores = [candidate.score for candidate in candidates]
        norm = NORMALISERS[leg.norm](ranking) if ranking is not None and candidates else None
        self._norms, self._missing = (norm.scores, norm.missing) if norm else ((), 0.0)
        self._silent = {name: float(measure == "silent") for name, measure in leg.features.items()}
        measures: dict[Measure, Callable[[int | None], float]] = {
            "silent": lambda place: 0.0,
            # Shows whether anything is near the query.
            "best": lambda place: self._scores[0],
            "score": self._score,
            # A BM25 score twice as high is not twice as likely.
            "log_score": lambda place: math.log1p(self._score(place)),
            "normalised": lambda place: self._missing if place is None else self._norms[place],
            "place": lambda place: (
                0.0 if place is None else PLACE_CONSTANT / (PLACE_CONSTANT + place + 1)
            ),
            "gap": self._score_gap,
        }
        self._measures = [(name, measures[measure]) for name, measure in leg.features.items()]

    def features(self, id: str) -> dict[str, float]:
        if not self._scores:
            return self._silent
        place = self._places.get(id)
        return {name: measure(place) for name, measure in self._measures}

    def _score(self, place: int | None) -> float:
        return self._scores[-1 if place is None else place]

    def _score_gap(self, place: int | None) -> float:
        if place is None:
            return 0.0
        after = self._norms[place + 1] if place + 1 < len(self._norms) else self._missing
        return self._norms[place] - after


TEXT_MATCH_FEATURES: tuple[str, ...] = (
    "coverage",  # share of the query's words that the memory holds, weighted by rarity
    "rarest",  # rarity of the rarest of these words
    "pairs",  # share of the query's adjacent word pairs that are adjacent here too
    "exact",  # the exact-match score
    "known",  # of the query: share of its words that any memory holds, weighted by rarity
    "words",  # of the query: logarithm of its number of words
)


class TextMatch:
    """The match of memories with one query's words, according to the index."""

    def __init__(
        self, store: Store, question: Question, filter: Filter, bm25: Bm25, texts: IndexedTexts
    ) -> None:
        self._store, self._question, self._bm25, self._texts = store, question, bm25, texts
        holders = store.lexical.holders(question.terms, filter, bm25) if question.words else {}
        memories = store.memories.visible_count(filter)
        self._rarity = {word.text: _rarity(word, holders, memories) for word in question.words}
        self._total = math.fsum(self._rarity.values())
        self._rarest_possible = math.log1p(2 * memories) or 1.0
        self._pairs = list(pairwise([word.terms[0] for word in question.words]))
        known = math.fsum(
            self._rarity[word.text] for word in question.words if holders.get(word.terms[0], 0)
        )
        self._known = known / self._total if self._total else 0.0
        self._length = math.log1p(len(question.words))
        self._terms = (
            (*question.every_term, NOT_ENGLISH) if question.languages else question.every_term
        )
        self._held: dict[str, frozenset[str]] = {}
        self._words: dict[str, list[str]] = {}
        self._exactness = Exactness(question, bool(bm25.content and bm25.title and bm25.keywords))
        self._exact: dict[str, float] = {}

    def look_up(self, ids: Iterable[str]) -> None:
        missing = [id for id in ids if id not in self._held]
        if missing:
            self._held |= self._store.lexical.held(self._terms, missing, self._bm25)

    def may_be_exact(self, id: str) -> bool:
        self.look_up((id,))
        return self._exactness.is_possible(self._held[id])

    def look_into(self, memories: Sequence[Memory]) -> None:
        """Load what `exactness` needs."""
        self.look_up(memory.id for memory in memories)
        unknown = (memory for memory in memories if memory.id not in self._exact)
        self._texts.read(
            one for one in unknown if self._exactness.needs_terms(one, self._held[one.id])
        )

    def read(self, memories: Sequence[Memory]) -> None:
        """Load what `of` needs."""
        self.look_into(memories)
        if self._pairs:
            self._texts.read(memory for memory in memories if self._pairs_held(memory))

    def words_matched_by(self, memory: Memory) -> list[str]:
        found = self._words.get(memory.id)
        if found is None:
            found = self._words[memory.id] = self._question.words_matched_by(
                self._terms_held(memory)
            )
        return found

    def exactness(self, memory: Memory) -> float:
        found = self._exact.get(memory.id)
        if found is None:
            held = self._terms_held(memory)
            found = self._exact[memory.id] = self._exactness.of(
                memory, held, lambda: self._in_order(memory)
            )
        return found

    def _terms_held(self, memory: Memory) -> frozenset[str]:
        if memory.id not in self._held:
            self.look_up((memory.id,))
        return self._held[memory.id]

    def _pairs_held(self, memory: Memory) -> list[tuple[str, str]]:
        held = self._terms_held(memory)
        return [pair for pair in self._pairs if pair[0] in held and pair[1] in held]

    def of(self, memory: Memory) -> dict[str, float]:
        covered = [self._rarity[word] for word in self.words_matched_by(memory)]
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
        content, title = self._texts.of(memory)
        return f" {title} {content} " if title else f" {content} "


def _rarity(word: Word, holders: Mapping[str, int], memories: int) -> float:
    """Weigh a word by the rarity of its most specific term."""
    return math.log1p(memories / (0.5 + holders.get(word.terms[0], 0)))
