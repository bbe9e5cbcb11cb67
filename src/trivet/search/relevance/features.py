"""What is known of the candidates of one answer, as the named numbers that the model of relevance was trained on.

Three kinds: where a candidate stands in the fused list, what each leg says of it, and how its words answer the query's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from trivet.analyse import Question
from trivet.search.fuse.normalise import NORMALISERS
from trivet.search.indexed_texts import IndexedTexts
from trivet.search.legs.leg import Leg, Measure
from trivet.search.legs.registry import legs
from trivet.search.recipe import Recipe
from trivet.search.relevance.wording import WORDING_FEATURES, Wording
from trivet.types import Filter, Fused, Memory, Ranking

if TYPE_CHECKING:
    from trivet.store import Store

# So many of the best are looked at together; later ones hardly ever belong to an answer.
HEAD = 50
# A place in a leg's list counts 10 / (10 + place): the first few differ, the later ones hardly do.
PLACE_CONSTANT = 10.0
# Legs agree on what both have among so many of their first.
AGREED_HEAD = 10


def feature_names() -> tuple[str, ...]:
    return (
        "fixed",  # the fused score as a deviation from the head's mean
        "first",  # one over its place
        "legs_agree",  # of the query: the share of first hits that the legs have in common
        *(name for leg in legs() for name in leg.features),
        *WORDING_FEATURES,
    )


class Evidence:
    """Of one answer to one question; made at once, asked for each candidate that matters."""

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
        by_score = sorted(fused, key=lambda hit: -hit.score)[:HEAD]  # stable: the fused order, whatever came after it
        self._places = {hit.id: place for place, hit in enumerate(by_score)}
        self._scores = [hit.score for hit in by_score]
        self._rankings = rankings
        self._known: dict[tuple[str, str], dict[str, float]] = {}

    def of(self, id: str, memory: Memory) -> dict[str, float] | None:
        """The features of a candidate. None beyond the head: nothing is known so far down."""
        place = self._places.get(id)
        if place is None:
            return None
        if (id, memory.id) not in self._known:  # asked twice where the first look was unsure
            self._known[id, memory.id] = self._measured(id, memory, place)
        return self._known[id, memory.id]

    def _measured(self, id: str, memory: Memory, place: int) -> dict[str, float]:
        known = {"fixed": self._deviations[place], "first": 1.0 / (place + 1), "legs_agree": self._agreement}
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
        """Between the legs that search by themselves and whose order can be trusted."""
        trusted = {leg.name for leg in legs() if leg.trust}
        heads = [
            {candidate.id for candidate in ranking.candidates[:AGREED_HEAD]}
            for ranking in self._rankings
            if ranking.leg in trusted
        ]
        return len(set.intersection(*heads)) / AGREED_HEAD if len(heads) > 1 else 0.0

    @cached_property
    def wording(self) -> Wording:
        return Wording(self._store, self._question, self._filter, self._recipe.bm25, self.texts)


class RankedLeg:
    """What one leg's ranking says of a memory. A leg that returned nothing at all says 0, but that it is silent."""

    def __init__(self, leg: Leg, ranking: Ranking | None) -> None:
        candidates = ranking.candidates if ranking is not None else ()
        self._places = {candidate.id: place for place, candidate in enumerate(candidates)}
        self._scores = [candidate.score for candidate in candidates]
        norm = NORMALISERS[leg.norm](ranking) if ranking is not None and candidates else None
        self._norms, self._missing = (norm.scores, norm.missing) if norm else ((), 0.0)
        self._silent = {name: float(measure == "silent") for name, measure in leg.features.items()}
        measures: dict[Measure, Callable[[int | None], float]] = {
            "silent": lambda place: 0.0,
            # Of the query rather than of the memory: whether anything is near it at all.
            "best": lambda place: self._scores[0],
            "score": self._score,
            # BM25 has no upper end, and twice the score is not twice as likely.
            "log_score": lambda place: math.log1p(self._score(place)),
            "normalised": lambda place: self._missing if place is None else self._norms[place],
            "place": lambda place: 0.0 if place is None else PLACE_CONSTANT / (PLACE_CONSTANT + place + 1),
            "gap": self._gap,
        }
        self._measures = [(name, measures[measure]) for name, measure in leg.features.items()]

    def features(self, id: str) -> dict[str, float]:
        if not self._scores:
            return self._silent
        place = self._places.get(id)
        return {name: measure(place) for name, measure in self._measures}

    def _score(self, place: int | None) -> float:
        """That of the last hit for what the leg did not return."""
        return self._scores[-1 if place is None else place]

    def _gap(self, place: int | None) -> float:
        """How far ahead of the next."""
        if place is None:
            return 0.0
        after = self._norms[place + 1] if place + 1 < len(self._norms) else self._missing
        return self._norms[place] - after
