"""Scoring candidates by exact matches, importance and time, reading only possible hits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from numpy.typing import NDArray

from trivet.memory.answer.decision import ScoredCandidate
from trivet.search.legs.registry import legs
from trivet.search.memory_times import decode_mentioned_times
from trivet.search.recipe import Recipe
from trivet.search.relevance import importance_prior
from trivet.search.relevance_features import TextMatch
from trivet.types import Filter, Fused, Memory

if TYPE_CHECKING:
    from trivet.search.temporal_filter import TemporalQuery
    from trivet.store import Store


# Candidates read beyond `limit`: later steps drop hits and bring others forward.
EXTRA_CANDIDATES = 5
# Stands for the importance of an unread memory.
UNKNOWN = -1.0

Scores = NDArray[np.float64]


class CandidateScoring:
    """A recall's candidates, with score bounds that avoid reading most."""

    def __init__(
        self,
        store: Store,
        wording: TextMatch,
        fused: Sequence[Fused],
        recipe: Recipe,
        filter: Filter,
        asked: TemporalQuery | None,
    ) -> None:
        self._store, self._wording, self._fused, self._recipe, self._filter = (
            store,
            wording,
            fused,
            recipe,
            filter,
        )
        self._time = None if asked is None else TemporalWeights(store, fused, asked, recipe.time)
        self._complete = {leg.name for leg in legs() if leg.finds_exact_matches}

    def first(self, limit: int) -> tuple[ScoredCandidate, ...]:
        """Return the best candidates and a few more, none of them purged."""
        return _best_first(self._scored(self._possible(limit + EXTRA_CANDIDATES)))

    def unread(
        self, read: Sequence[ScoredCandidate], limit: int, ids: Sequence[str]
    ) -> tuple[ScoredCandidate, ...]:
        """Return the unread `ids` whose score could still make them hits."""
        wanted = set(ids).difference(hit.fused.id for hit in read)
        least = read[limit - 1].score if len(read) >= limit else 0.0
        return _best_first(
            self._scored(
                [one for one in self._fused if one.id in wanted and self._upper_bound(one) >= least]
            )
        )

    def _upper_bound(self, candidate: Fused) -> float:
        best = candidate.standing + self._recipe.bonus
        return best if self._time is None else self._time.of(candidate.id, best)

    @cached_property
    def _bounds(self) -> tuple[Scores, Scores]:
        ids = [candidate.id for candidate in self._fused]
        shown = self._store.memories.shown(ids, self._filter)
        importances = np.array([shown.get(id, UNKNOWN) for id in ids])
        standings = np.array([candidate.standing for candidate in self._fused])
        unknown, weight = importances == UNKNOWN, self._recipe.prior
        least = standings * ((1 - weight) + weight * np.where(unknown, 0.0, importances))
        most = (standings + self._recipe.bonus) * (
            (1 - weight) + weight * np.where(unknown, 1.0, importances)
        )
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
        return [
            self._fused[at]
            for at in near
            if least[at] >= last or self._may_be_exact(self._fused[at])
        ]

    def _may_be_exact(self, candidate: Fused) -> bool:
        return self._could_be_exact(candidate) and self._wording.may_be_exact(candidate.id)

    def _could_be_exact(self, candidate: Fused) -> bool:
        # Without a complete leg, every candidate could be exact: `all` of nothing is true.
        if not self._recipe.bonus:
            return False
        return all(
            part.rank is not None for part in candidate.contributions if part.leg in self._complete
        )

    def _scored(self, candidates: Sequence[Fused]) -> list[ScoredCandidate]:
        memories = (
            self._store.memories.get_many([candidate.id for candidate in candidates])
            if candidates
            else {}
        )
        self._wording.look_into(list(memories.values()))
        found = [self._weighed(one, memories[one.id]) for one in candidates if one.id in memories]
        return found if self._time is None else [self._time.weighed(hit) for hit in found]

    def _weighed(self, fused: Fused, memory: Memory) -> ScoredCandidate:
        exact = self._wording.exactness(memory) if self._could_be_exact(fused) else 0.0
        # Up to 1 + bonus, shown as 1.
        lifted = fused.standing + self._recipe.bonus * exact
        prior = importance_prior(memory.importance, self._recipe.prior)
        return ScoredCandidate(
            fused=fused,
            memory=memory,
            exactness=exact,
            bonus=lifted - fused.standing,
            prior=prior,
            score=lifted * prior,
        )


def _best_first(scored: Sequence[ScoredCandidate]) -> tuple[ScoredCandidate, ...]:
    return tuple(sorted(scored, key=lambda hit: -hit.score))


# If a question is mostly about a time, its memories gain this share of what their score lacks to 1.
# A factor could not raise the score of 0 that the last of a few candidates has.
TIME_LIFT = 0.4
# Added to the log odds of being relevant, which the model computes without time: more if fewer
# candidates match ("yesterday"). On synthetic lives the log loss of such hits falls from .76 to
# .47, and 7 more of 337 prompts get their memory (docs/decisions/0039).
BASE_TIME_EVIDENCE = 1.0
MAX_TIME_EVIDENCE = 4.0


class TemporalWeights:
    """Score changes by the query's time; none if no candidate belongs to it."""

    def __init__(
        self, store: Store, fused: Sequence[Fused], asked: TemporalQuery, share: float
    ) -> None:
        self._time_reasons = _time_reasons(store, [candidate.id for candidate in fused], asked)
        self._weight = asked.weight(share)
        self._lift = TIME_LIFT * self._weight if asked.is_mostly_time else 0.0
        belonging = sum(map(bool, self._time_reasons.values()))
        self._any = bool(belonging)
        self._time_evidence = (
            asked.weight(1.0) * _time_evidence(belonging / len(self._time_reasons))
            if belonging
            else 0.0
        )

    def belongs(self, id: str) -> bool:
        return self._time_reasons.get(id) is not None

    def of(self, id: str, score: float) -> float:
        if not self._any:
            return score
        return (
            score + self._lift * max(0.0, 1 - score)
            if self.belongs(id)
            else score * (1 - self._weight)
        )

    def weighed(self, hit: ScoredCandidate) -> ScoredCandidate:
        reason, score = self._time_reasons.get(hit.memory.id), self.of(hit.memory.id, hit.score)
        if reason is not None:
            return msgspec.structs.replace(
                hit, time=reason, time_evidence=self._time_evidence, score=score
            )
        return (
            msgspec.structs.replace(hit, time_factor=1 - self._weight, score=score)
            if self._any
            else hit
        )


def _time_reasons(store: Store, ids: Sequence[str], asked: TemporalQuery) -> dict[str, str | None]:
    """Read only texts stored by an earlier version or in another time zone."""
    found: dict[str, str | None] = {}
    for id, row in store.memories.dated(ids).items():
        reason = asked.reason_by_dates(row)
        times = decode_mentioned_times(row.times, row.created_at) if reason is None else ()
        if times is not None:
            found[id] = reason or asked.reason_by_text(times)
    missing = [id for id in ids if id not in found]
    read = store.memories.get_many(missing) if missing else {}
    return found | {id: asked.reason(memory) for id, memory in read.items()}


def _time_evidence(share: float) -> float:
    return min(MAX_TIME_EVIDENCE, BASE_TIME_EVIDENCE - math.log(share))


def likelier(relevance: float, evidence: float) -> float:
    """Add evidence, in log odds, to a probability."""
    if not 0 < relevance < 1:
        return relevance
    odds = relevance / (1 - relevance) * math.exp(evidence)
    return round(odds / (1 + odds), 4)


def no_match_in_period_note(
    scored: Sequence[ScoredCandidate], asked: TemporalQuery
) -> tuple[str, ...]:
    if not asked.is_mostly_time or any(hit.time or hit.time_factor < 1 for hit in scored):
        return ()
    return (f"no memory that was found is from {asked.understood}",)
