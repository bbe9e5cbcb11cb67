"""Everything that is known of the candidates of one answer, as the features that models judge by."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from trivet.analyse import Question
from trivet.search.fuse.features import LegFeatures
from trivet.search.recipe import Recipe
from trivet.search.relevance.wording import Wording
from trivet.types import Filter, Fused, Memory, Ranking

if TYPE_CHECKING:
    from trivet.store import Store


class Words:
    """How memories' words answer the query's. Made for one recall; counts are looked up when first needed."""

    def __init__(self, store: Store, question: Question, filter: Filter, recipe: Recipe) -> None:
        self._store = store
        self._question = question
        self._filter = filter
        self._recipe = recipe

    @cached_property
    def wording(self) -> Wording:
        terms = self._question.terms
        holders = self._store.lexical.holders(terms, self._filter, self._recipe.bm25) if terms else {}
        return Wording(self._question, holders, self._store.memories.visible_count(self._filter))

    def of_all(self, ids: Sequence[str]) -> dict[str, dict[str, float]]:
        memories = self._store.memories.get_many(ids)
        return {id: self.wording.of(memory) for id, memory in memories.items()}


class Evidence:
    """Made for one answer; the numbers of a candidate are looked up by its id. Beyond the head there are none."""

    def __init__(self, words: Words, fused: Sequence[Fused], rankings: Sequence[Ranking]) -> None:
        by_score = sorted(fused, key=lambda hit: -hit.score)  # stable: the fused order, whatever came after it
        self._legs = LegFeatures(by_score, rankings)
        self._places = {hit.id: place for place, hit in enumerate(by_score[: len(self._legs)])}
        self._words = words

    def of(self, fused: Fused, memory: Memory) -> dict[str, float] | None:
        place = self._places.get(fused.id)
        return None if place is None else {**self._legs.of(place), **self._words.wording.of(memory)}
