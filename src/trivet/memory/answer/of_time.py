"""A recall whose question names a time: what belongs to the time takes part, and counts more than what does not."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from trivet.memory.answer.decision import Retrieved, Scored
from trivet.search.legs.dense import NAME as DENSE
from trivet.search.legs.lexical import NAME as LEXICAL
from trivet.types import Candidate, Filter, Ranking

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


def weighed_by_time(store: Store, scored: Sequence[Scored], asked: TimeAsked, share: float) -> list[Scored]:
    """Lowers what does not belong to the time, if anything does. `share` is the recipe's."""
    times = store.memories.times_said([hit.memory.id for hit in scored])
    reasons = [asked.reason(hit.memory, times.get(hit.memory.id)) for hit in scored]
    if not any(reasons):
        return list(scored)
    weight = asked.weight(share)
    lift = LIFT * weight if asked.is_mostly_time else 0.0
    evidence = asked.weight(1.0) * _evidence(sum(map(bool, reasons)) / len(reasons))
    return [_with_reason(hit, reason, weight, lift, evidence) for hit, reason in zip(scored, reasons, strict=True)]


def _evidence(share: float) -> float:
    return min(MOST_EVIDENCE, EVIDENCE_OF_EVERY_TIME - math.log(share))


def _with_reason(hit: Scored, reason: str | None, weight: float, lift: float, evidence: float) -> Scored:
    if reason is None:
        return msgspec.structs.replace(hit, time_factor=1 - weight, score=hit.score * (1 - weight))
    lifted = hit.score + lift * max(0.0, 1 - hit.score)
    return msgspec.structs.replace(hit, time=reason, time_evidence=evidence, score=lifted)


def likelier(relevance: float, evidence: float) -> float:
    """How likely a hit is to be relevant, now that it is known to belong to the time."""
    if not 0 < relevance < 1:
        return relevance
    odds = relevance / (1 - relevance) * math.exp(evidence)
    return round(odds / (1 + odds), 4)


def nothing_of_time(scored: Sequence[Scored], asked: TimeAsked) -> tuple[str, ...]:
    """A note where the question is about a time, and nothing that was found belongs to it."""
    if not asked.is_mostly_time or any(hit.time for hit in scored):
        return ()
    return (f"nothing that was found is of {asked.understood}",)
