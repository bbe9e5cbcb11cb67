"""What bonus and prior make of the fused scores: of the candidates that can come first, and only those are read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from trivet.memory.answer.decision import Scored
from trivet.memory.answer.of_time import TimeWeights
from trivet.search.legs.registry import legs
from trivet.search.prior import importance_prior
from trivet.search.recipe import Recipe
from trivet.search.relevance.wording import Wording
from trivet.types import Filter, Fused, Memory

if TYPE_CHECKING:
    from trivet.search.when import TimeAsked
    from trivet.store import Store

# Redirects, duplicates and caps use hits up, and those shown may be ordered anew by what is behind them (later_first),
# so some more than `limit` are read.
SPARE = 5


class _Chance(NamedTuple):
    """Of a candidate that was not read: its score if it holds nothing of the query literally, and if it holds all."""

    candidate: Fused
    least: float
    most: float


class Weighing:
    """The candidates of one recall and what is known of them unread: importance, and which of the query's terms."""

    def __init__(
        self,
        store: Store,
        wording: Wording,
        fused: Sequence[Fused],
        recipe: Recipe,
        filter: Filter,
        asked: TimeAsked | None,
    ) -> None:
        self._store, self._wording, self._fused, self._recipe = store, wording, fused, recipe
        self._time = None if asked is None else TimeWeights(store, fused, asked, recipe.time)
        self._chances = self._looked_up(filter)
        # The legs that find every memory that holds the query literally.
        self._complete = {leg.name for leg in legs() if leg.finds_exact_matches}

    def first(self, limit: int) -> tuple[Scored, ...]:
        """Those that can be among the first so many, and some more, in the order of their scores.

        Where the question names a time, first are those that can come first by it.
        """
        possible = self._possible(limit + SPARE)
        scored = self._scored(possible)
        if len(scored) < len(possible):  # some are gone since the legs looked: then anyone may be among the first
            scored = self._scored(self._fused)
        # sorted() is stable, so equal scores keep the order of the fusion.
        return tuple(sorted(scored, key=lambda hit: -hit.score))

    def named(self, ids: Sequence[str], least: float) -> list[Scored]:
        """Those of the candidates that have these ids and that full importance and bonus would lift to this score."""
        wanted = set(ids)
        near = [one for one in self._fused if one.id in wanted and self._at_best(one) >= least] if wanted else []
        return sorted(self._scored(near), key=lambda hit: -hit.score)

    def _at_best(self, candidate: Fused) -> float:
        best = candidate.standing + self._recipe.bonus
        return best if self._time is None else self._time.of(candidate.id, best)

    def _looked_up(self, filter: Filter) -> list[_Chance]:
        importances = self._store.memories.shown([candidate.id for candidate in self._fused], filter)
        return [self._chance(candidate, importances.get(candidate.id)) for candidate in self._fused]

    def _chance(self, candidate: Fused, importance: float | None) -> _Chance:
        lowest, highest = (0.0, 1.0) if importance is None else (importance, importance)
        least = candidate.standing * importance_prior(lowest, self._recipe.prior)
        most = (candidate.standing + self._recipe.bonus) * importance_prior(highest, self._recipe.prior)
        if self._time is None:
            return _Chance(candidate, least, most)
        return _Chance(candidate, self._time.of(candidate.id, least), self._time.of(candidate.id, most))

    def _possible(self, wanted: int) -> list[Fused]:
        last = sorted((one.least for one in self._chances), reverse=True)[:wanted][-1:] or [0.0]
        near = [one for one in self._chances if one.most >= last[0]]
        self._wording.look_up(one.candidate.id for one in near)
        return [
            one.candidate
            for one in near
            if one.least >= last[0]
            or (self._could_be_exact(one.candidate) and self._wording.may_be_exact(one.candidate.id))
        ]

    def _could_be_exact(self, candidate: Fused) -> bool:
        """Where none of those legs ran, every candidate could."""
        parts = (part for part in candidate.contributions if part.leg in self._complete)
        return bool(self._recipe.bonus) and all(part.rank is not None for part in parts)

    def _scored(self, candidates: Sequence[Fused]) -> list[Scored]:
        """Those that are still there."""
        memories = self._store.memories.get_many([candidate.id for candidate in candidates]) if candidates else {}
        self._wording.look_into(list(memories.values()))
        found = [self._weighed(one, memories[one.id]) for one in candidates if one.id in memories]
        return found if self._time is None else [self._time.weighed(hit) for hit in found]

    def _weighed(self, fused: Fused, memory: Memory) -> Scored:
        exact = self._wording.exactness(memory) if self._could_be_exact(fused) else 0.0
        # At most 1 + bonus: that decides the order and is shown as 1.
        lifted = fused.standing + self._recipe.bonus * exact
        prior = importance_prior(memory.importance, self._recipe.prior)
        return Scored(
            fused=fused,
            memory=memory,
            exactness=exact,
            bonus=lifted - fused.standing,
            prior=prior,
            score=lifted * prior,
        )
