"""The values that a recall passes from step to step, in order."""

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
    """The rankings of the legs; if `narrowed`, only memories with the quoted words."""

    rankings: list[Ranking]
    health: list[LegHealth]
    notes: tuple[str, ...] = ()
    narrowed: bool = False


class CandidatePool(msgspec.Struct, frozen=True):
    """The candidates, best first, with features for each query in `asked`."""

    fused: tuple[Fused, ...]
    evidence: tuple[Evidence, ...]
    health: Sequence[LegHealth] = ()
    notes: tuple[str, ...] = ()
    asked: tuple[str, ...] = ()


class ScoredCandidate(Value, frozen=True, kw_only=True):
    fused: Fused
    memory: Memory
    exactness: float
    bonus: float
    prior: float
    score: float
    time: str | None = None  # why it belongs to the time that the query names
    time_factor: float = 1.0
    time_evidence: float = 0.0  # what that adds to the log odds of being relevant
    relevance: float = 0.0
    redirected_from: tuple[str, ...] = ()
    collapsed: tuple[str, ...] = ()
    yields_to: tuple[str, ...] = ()
    older_than: str | None = None
    newer_than: tuple[str, ...] = ()


class Decision(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of a recall and how it came about.

    `question` is `query` corrected and without its time; `dropped` gives reasons by id.
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
