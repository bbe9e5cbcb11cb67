"""What a recall carries from step to step, in the order in which it arises."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from trivet.analyse import Question
from trivet.search.recipe import Recipe
from trivet.search.relevance_features import Evidence
from trivet.types import Filter, Fused, LegHealth, Memory, Ranking, Value

if TYPE_CHECKING:
    from trivet.search.temporal_filter import TemporalQuery

if TYPE_CHECKING:
    from trivet.analyse import Question
    from trivet.search.recipe import Recipe
    from trivet.search.relevance_features import Evidence
    from trivet.search.temporal_filter import TemporalQuery


class Retrieved(msgspec.Struct, frozen=True):
    """What the legs gave. `narrowed`: quoted words were found, so only memories that hold them are left."""

    rankings: list[Ranking]
    health: list[LegHealth]
    notes: tuple[str, ...] = ()
    narrowed: bool = False


class CandidatePool(msgspec.Struct, frozen=True):
    """The candidates from fusion to choice: best first, as far as is known by now.

    `evidence` is for the model of relevance, one for each question asked: the query and, in `asked`, its rewrites.
    """

    fused: tuple[Fused, ...]
    evidence: tuple[Evidence, ...]
    health: Sequence[LegHealth] = ()
    notes: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()


class ScoredCandidate(Value, frozen=True, kw_only=True):
    """A candidate that was read, with bonus and prior on its score; later with what was found out besides."""

    fused: Fused
    memory: Memory
    exactness: float
    bonus: float
    prior: float
    score: float
    time: str | None = None  # why it belongs to the time that was asked about
    time_factor: float = 1.0
    time_evidence: float = 0.0  # what that adds to the logarithm of its odds to be relevant
    relevance: float = 0.0
    redirected_from: tuple[str, ...] = ()
    collapsed: tuple[str, ...] = ()
    yields_to: tuple[str, ...] = ()
    older_than: str | None = None
    newer_than: tuple[str, ...] = ()


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """What is answered and how it came about. `dropped` says of each candidate that was read why it is no hit.

    `query` is what the caller asked, and `question` what was asked of the store: its slips mended, its time taken out.
    """

    query: str
    filter: Filter
    question: Question
    recipe: Recipe
    retrieved: Retrieved
    pool: CandidatePool
    hits: tuple[ScoredCandidate, ...]
    dropped: dict[str, str]
    time: TemporalQuery | None = None
    best_relevance: float | None = None
    nothing_relevant: bool = True


class Stopwatch:
    """How long each stage of a recall took, for the trace."""

    def __init__(self) -> None:
        self._started = time.perf_counter()
        self.stages_ms: dict[str, float] = {}

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.stages_ms[name] = round((time.perf_counter() - started) * 1000, 3)

    def total_ms(self) -> float:
        return round((time.perf_counter() - self._started) * 1000, 3)
