"""A recall whose question names a time: what belongs to the time takes part, and counts more than what does not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from trivet.memory.answer.decision import Retrieved, Scored
from trivet.search.legs.dense import NAME as DENSE
from trivet.search.legs.lexical import NAME as LEXICAL
from trivet.search.said import times_stored
from trivet.types import Candidate, Filter, Fused, Ranking

if TYPE_CHECKING:
    from trivet.search.recipe import Recipe
    from trivet.search.when import TimeAsked
    from trivet.store import Store

# What belongs to the time of a question that is mostly about it gets this share of what its score lacks: in a small
# store the last of few candidates has a score of 0, which no factor lifts.
LIFT = 0.4
# By how much the odds of being relevant grow, as a logarithm, for what belongs to the time of a question that names
# nothing else: the more, the fewer of the candidates do. "Yesterday" singles out one of fifty, "this year" none. The
# model of relevance does not see time. On made-up lives the log loss of such hits falls from .76 to .47 (with 1.5 for
# every time, as it was), and seven prompts more of 337 are given their memory (docs/decisions/0039).
EVIDENCE_OF_EVERY_TIME = 1.0
MOST_EVIDENCE = 4.0


def with_those_saying_so(found: Retrieved, store: Store, asked: TimeAsked, filter: Filter, recipe: Recipe) -> Retrieved:
    """What was found, and behind it what says "last week" itself: those words were left out of the search."""
    legs = {ranking.leg for ranking in found.rankings if ranking.candidates}
    if not asked.left_out or DENSE in legs or LEXICAL not in {ranking.leg for ranking in found.rankings}:
        return found
    said = store.lexical.search(asked.left_out, asked.left_out, 1, filter, recipe.bm25, recipe.depth)
    rankings = [_extended(ranking, said if ranking.leg == LEXICAL else ()) for ranking in found.rankings]
    return msgspec.structs.replace(found, rankings=rankings)


def with_those_within(found: Retrieved, within: Retrieved) -> Retrieved:
    """What was found, and behind it in each leg what that leg found within the time alone."""
    more = {ranking.leg: ranking.candidates for ranking in within.rankings}
    rankings = [_extended(ranking, more.get(ranking.leg, ())) for ranking in found.rankings]
    failed = (f"within the time asked about, the {leg.leg} leg did not answer" for leg in within.health if leg.reason)
    return msgspec.structs.replace(found, rankings=rankings, notes=(*found.notes, *failed))


def _extended(ranking: Ranking, more: Sequence[Candidate]) -> Ranking:
    known = {candidate.id for candidate in ranking.candidates}
    last = ranking.candidates[-1].score if ranking.candidates else math.inf
    # A word is scored by how rare it is in what the filter shows, so within the time a score can be higher.
    added = [msgspec.structs.replace(one, score=min(one.score, last)) for one in more if one.id not in known]
    return msgspec.structs.replace(ranking, candidates=(*ranking.candidates, *added))


class TimeWeights:
    """What the time that was asked about makes of the scores of candidates: it lowers what does not belong to it, if
    anything does. `share` is the recipe's."""

    def __init__(self, store: Store, fused: Sequence[Fused], asked: TimeAsked, share: float) -> None:
        self._reasons = _reasons(store, [candidate.id for candidate in fused], asked)
        self._weight = asked.weight(share)
        self._lift = LIFT * self._weight if asked.is_mostly_time else 0.0
        belonging = sum(map(bool, self._reasons.values()))
        self._any = bool(belonging)
        self._evidence = asked.weight(1.0) * _evidence(belonging / len(self._reasons)) if belonging else 0.0

    def belongs(self, id: str) -> bool:
        return self._reasons.get(id) is not None

    def of(self, id: str, score: float) -> float:
        """The higher the score, the higher what is made of it."""
        if not self._any:
            return score
        return score + self._lift * max(0.0, 1 - score) if self.belongs(id) else score * (1 - self._weight)

    def weighed(self, hit: Scored) -> Scored:
        reason, score = self._reasons.get(hit.memory.id), self.of(hit.memory.id, hit.score)
        if reason is not None:
            return msgspec.structs.replace(hit, time=reason, time_evidence=self._evidence, score=score)
        return msgspec.structs.replace(hit, time_factor=1 - self._weight, score=score) if self._any else hit


def _reasons(store: Store, ids: Sequence[str], asked: TimeAsked) -> dict[str, str | None]:
    """Why each of the candidates that are there belongs to the time. Texts are read only of memories that were stored
    by an earlier version or in another zone of time."""
    found: dict[str, str | None] = {}
    for id, row in store.memories.dated(ids).items():
        reason = asked.reason_by_dates(row)
        times = times_stored(row.times, row.created_at) if reason is None else ()
        if times is not None:
            found[id] = reason or asked.reason_by_text(times)
    missing = [id for id in ids if id not in found]
    read = store.memories.get_many(missing) if missing else {}
    return found | {id: asked.reason(memory) for id, memory in read.items()}


def _evidence(share: float) -> float:
    return min(MOST_EVIDENCE, EVIDENCE_OF_EVERY_TIME - math.log(share))


def likelier(relevance: float, evidence: float) -> float:
    """How likely a hit is to be relevant, now that it is known to belong to the time."""
    if not 0 < relevance < 1:
        return relevance
    odds = relevance / (1 - relevance) * math.exp(evidence)
    return round(odds / (1 + odds), 4)


def nothing_of_time(scored: Sequence[Scored], asked: TimeAsked) -> tuple[str, ...]:
    """A note where the question is about a time, and nothing that was found belongs to it."""
    if not asked.is_mostly_time or any(hit.time or hit.time_factor < 1 for hit in scored):
        return ()
    return (f"nothing that was found is of {asked.understood}",)
