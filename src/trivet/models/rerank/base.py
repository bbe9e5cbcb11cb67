"""What a reranker is, and the check that every score passes before anyone may use it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from trivet.errors import RerankerError


class Reranker(Protocol):
    """Scores texts by how well each answers a query. Safe to share between threads; costs nothing until its first use.

    Scores may be of any scale, higher is better; the blend looks only at how they lie to each other.
    """

    @property
    def identity(self) -> str:
        """What answers and measurements name it by."""

    @property
    def local(self) -> bool:
        """True when the model runs inside this process, so that reading a text tells it to nobody."""

    def score(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        """One score a text, in the order given. Work that is not done at `deadline` (time.monotonic) is given up."""


def checked(scores: Sequence[float], count: int, source: str) -> list[float]:
    """The scores as plain numbers, or a RerankerError that names `source`."""
    if len(scores) != count:
        raise RerankerError(f"{source} answered {len(scores)} scores for {count} texts")
    try:
        numbers = [float(score) for score in scores]
    except (TypeError, ValueError):
        raise RerankerError(f"{source} answered something else than numbers") from None
    if not all(map(math.isfinite, numbers)):
        raise RerankerError(f"{source} answered a score that is NaN or infinite")
    return numbers
