"""One list out of the answers to a question and to its rewrites, by score."""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec

from trivet.types import Contribution, Fused

LEG = "expand"
# The question as it was asked counts as much as all its rewrites together.
SHARE = 0.5


def merged(original: Sequence[Fused], others: Sequence[Sequence[Fused]]) -> tuple[Fused, ...]:
    """Every memory that any of them found. Scores are on 0..1 within each list; what a list lacks is 0 there."""
    known = {hit.id: hit for hit in original}
    places: dict[str, int] = {}
    gained: dict[str, list[float]] = {}
    for answer in others:
        for place, hit in enumerate(answer, 1):
            known.setdefault(hit.id, msgspec.structs.replace(hit, score=0.0))
            gained.setdefault(hit.id, []).append(hit.score)
            places[hit.id] = min(place, places.get(hit.id, place))
    found = [_with_share(hit, places.get(hit.id), gained.get(hit.id, []), len(others)) for hit in known.values()]
    return tuple(sorted(found, key=lambda hit: -hit.score))  # stable: ties stay in the order of the question's own list


def _with_share(hit: Fused, place: int | None, scores: Sequence[float], lists: int) -> Fused:
    mean, best = math.fsum(scores) / lists, max(scores, default=0.0)
    part = Contribution(leg=LEG, rank=place, score=best, normalised=mean, weight=SHARE)
    score = (1 - SHARE) * hit.score + SHARE * mean
    return msgspec.structs.replace(hit, score=score, contributions=(*hit.contributions, part))
