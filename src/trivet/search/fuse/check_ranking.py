"""What every leg promises about its ranking. A broken promise is an error of that leg, never a strange result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import ge

from trivet.errors import InvalidInput, LegFailed
from trivet.types import Candidate, Ranking

# Above this the difference of two scores could overflow to infinity.
LARGEST_SCORE = 1e300


def check(ranking: Ranking) -> None:
    """Raise LegFailed unless scores are finite, at or above the floor and best first, and ids are given once."""
    floor, candidates = ranking.floor, ranking.candidates
    if not -LARGEST_SCORE <= floor <= LARGEST_SCORE:
        raise LegFailed(f"leg {ranking.leg!r} declares the floor {floor}; it must be a finite number")
    scores = [LARGEST_SCORE, *(candidate.score for candidate in candidates), floor]
    # NaN compares false with everything.
    falls = all(map(ge, scores, scores[1:]))
    if not falls or len({candidate.id for candidate in candidates}) < len(candidates):
        raise LegFailed(f"leg {ranking.leg!r}: {_broken(candidates, floor)}")


def check_all(rankings: Sequence[Ranking]) -> None:
    """Check each ranking, and that no two call themselves by the same leg name."""
    legs: set[str] = set()
    for ranking in rankings:
        if ranking.leg in legs:
            raise InvalidInput(f"two rankings are of leg {ranking.leg!r}; give each leg one name and one ranking")
        legs.add(ranking.leg)
        check(ranking)


def _broken(candidates: Sequence[Candidate], floor: float) -> str:
    """What is wrong with the first that breaks a promise."""
    seen: set[str] = set()
    previous = LARGEST_SCORE
    for candidate in candidates:
        if candidate.id in seen:
            return f"memory {candidate.id!r} was returned twice"
        if not math.isfinite(candidate.score) or abs(candidate.score) > LARGEST_SCORE:
            return f"memory {candidate.id!r} has the score {candidate.score}, which is not a finite number in range"
        if candidate.score < floor:
            return f"memory {candidate.id!r} has the score {candidate.score}, below the declared floor {floor}"
        if candidate.score > previous:
            break
        seen.add(candidate.id)
        previous = candidate.score
    return f"memory {candidate.id!r} has the score {candidate.score}, above the one before it: not sorted best first"
