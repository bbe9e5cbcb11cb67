"""What bonus and prior make of the fused scores: of the candidates that can come first, and only those are read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

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

# Redirects, duplicates and caps use hits up, some may be gone, and those shown may be ordered anew by what is behind
# them (later_first), so some more than `limit` are read.
SPARE = 5
# For a memory whose importance is not known unread: it may be any.
UNKNOWN = -1.0

Scores = NDArray[np.float64]


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
        self._store, self._wording, self._fused, self._recipe, self._filter = store, wording, fused, recipe, filter
        self._time = None if asked is None else TimeWeights(store, fused, asked, recipe.time)
        # The legs that find every memory that holds the query literally.
        self._complete = {leg.name for leg in legs() if leg.finds_exact_matches}

    def first(self, limit: int) -> tuple[Scored, ...]:
        """Those that can be among the first so many, and some more, in the order of their scores.

        Where the question names a time, first are those that can come first by it. What is gone since the legs looked
        is left out: the caller asks for more where too few are left.
        """
        return _best_first(self._scored(self._possible(limit + SPARE)))

    def unread(self, read: Sequence[Scored], limit: int, ids: Sequence[str]) -> tuple[Scored, ...]:
        """Those of these memories that were not read, and that full importance and bonus would lift among the hits.

        What lies behind that does not count as found: it comes along with the hit that it updates (`later_first`).
        """
        wanted = set(ids).difference(hit.fused.id for hit in read)
        least = read[limit - 1].score if len(read) >= limit else 0.0
        return _best_first(
            self._scored([one for one in self._fused if one.id in wanted and self._at_best(one) >= least])
        )

    def _at_best(self, candidate: Fused) -> float:
        best = candidate.standing + self._recipe.bonus
        return best if self._time is None else self._time.of(candidate.id, best)

    @cached_property
    def _bounds(self) -> tuple[Scores, Scores]:
        """Of each candidate its score if it holds nothing of the query literally, and if it holds all."""
        ids = [candidate.id for candidate in self._fused]
        shown = self._store.memories.shown(ids, self._filter)
        importances = np.array([shown.get(id, UNKNOWN) for id in ids])
        standings = np.array([candidate.standing for candidate in self._fused])
        unknown, weight = importances == UNKNOWN, self._recipe.prior
        least = standings * ((1 - weight) + weight * np.where(unknown, 0.0, importances))
        most = (standings + self._recipe.bonus) * ((1 - weight) + weight * np.where(unknown, 1.0, importances))
        return (least, most) if self._time is None else (self._timed(least), self._timed(most))

    def _timed(self, scores: Scores) -> Scores:
        assert self._time is not None
        pairs = zip(self._fused, scores.tolist(), strict=True)
        return np.array([self._time.of(candidate.id, score) for candidate, score in pairs])

    def _possible(self, wanted: int) -> Sequence[Fused]:
        least, most = self._bounds
        if len(least) <= wanted:
            return self._fused
        last = np.partition(least, len(least) - wanted)[len(least) - wanted]
        near = np.flatnonzero(most >= last).tolist()
        self._wording.look_up(self._fused[at].id for at in near)
        return [self._fused[at] for at in near if least[at] >= last or self._may_be_exact(self._fused[at])]

    def _may_be_exact(self, candidate: Fused) -> bool:
        return self._could_be_exact(candidate) and self._wording.may_be_exact(candidate.id)

    def _could_be_exact(self, candidate: Fused) -> bool:
        """Where none of those legs ran, every candidate could."""
        if not self._recipe.bonus:
            return False
        return all(part.rank is not None for part in candidate.contributions if part.leg in self._complete)

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


def _best_first(scored: Sequence[Scored]) -> tuple[Scored, ...]:
    """Equal scores keep the order of the fusion."""
    return tuple(sorted(scored, key=lambda hit: -hit.score))
