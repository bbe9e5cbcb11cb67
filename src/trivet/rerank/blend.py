"""One order out of two: what the legs agreed on, and what the reranker thinks of the best of it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trivet.fuse.normalise import zscore
from trivet.fuse.scale import rescaled
from trivet.types import Candidate, Contribution, Fused, Ranking


def blended(fused: Sequence[Fused], top: int, ranking: Ranking, share: float) -> tuple[Fused, ...]:
    """The first `top` in the order of the weighed deviations of both scores; the rest stays behind them as it was.

    The new scores lie between those that these candidates had, so that bonus, prior and the rest keep their measure. A
    candidate that the reranker was not given keeps its own deviation.
    """
    head, rest = fused[:top], tuple(fused[top:])
    before = _deviations(_as_ranking(head))
    after = _deviations(ranking)
    raw = {candidate.id: candidate.score for candidate in ranking.candidates}
    places = {candidate.id: place for place, candidate in enumerate(ranking.candidates, 1)}
    mixed = [
        (1 - share) * before[hit.id] + share * after[hit.id] if hit.id in after else before[hit.id] for hit in head
    ]
    scores = rescaled(mixed, head, rest)
    marked = [
        msgspec.structs.replace(hit, blended=score, rerank=_contribution(hit.id, places, raw, after, share))
        for hit, score in zip(head, scores, strict=True)
    ]
    order = sorted(range(len(head)), key=mixed.__getitem__, reverse=True)  # stable: ties stay as they were
    return (*[marked[at] for at in order], *rest)


def _contribution(
    id: str, places: dict[str, int], raw: dict[str, float], deviations: dict[str, float], share: float
) -> Contribution | None:
    if id not in raw:
        return None
    return Contribution(leg="rerank", rank=places[id], score=raw[id], normalised=deviations[id], weight=share)


def _as_ranking(head: Sequence[Fused]) -> Ranking:
    return Ranking(leg="fused", floor=0.0, candidates=tuple(Candidate(id=hit.id, score=hit.score) for hit in head))


def _deviations(ranking: Ranking) -> dict[str, float]:
    ids = [candidate.id for candidate in ranking.candidates]
    return dict(zip(ids, zscore(ranking).scores, strict=True)) if ids else {}
