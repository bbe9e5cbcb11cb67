"""What a reranker said of a query and a text, kept: several surfaces have the same candidates read.

Only where no times are measured, for a kept score costs none. A local reranker reads each text by itself, so its
score is the same whatever stands beside it.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trivet.lab.bench import Bench
from trivet.models.rerank.base import Reranker
from trivet.models.rerank.registry import Rerankers
from trivet.models.rerank.spec import OFF, RerankSpec
from trivet.trivet import Trivet


def reading_once(bench: Bench) -> Bench:
    """The same bench, on which local rerankers read no pair twice. It is closed by whoever opened the first."""
    engine = bench.trivet.engine
    return Bench(bench.dataset, Trivet(msgspec.structs.replace(engine, rerankers=KeptReadings(engine.rerankers))))


class KeptReadings(Rerankers):
    def __init__(self, rerankers: Rerankers) -> None:
        super().__init__(RerankSpec(OFF))
        self.setting = rerankers.setting
        self._rerankers = rerankers
        self._kept: dict[str, KeptReader] = {}

    def named(self, kind: str) -> Reranker:
        reranker = self._rerankers.named(kind)
        return self._kept.setdefault(reranker.identity, KeptReader(reranker)) if reranker.local else reranker

    def resting(self, kind: str) -> str | None:
        return self._rerankers.resting(kind)

    def late(self, kind: str) -> None:
        self._rerankers.late(kind)


class KeptReader:
    """A reranker that has each text read once for a query."""

    local = True

    def __init__(self, reranker: Reranker) -> None:
        self.identity = reranker.identity
        self._reranker = reranker
        self._scores: dict[tuple[str, str], float] = {}

    def score(self, query: str, texts: Sequence[str], deadline: float) -> list[float]:
        new = list(dict.fromkeys(text for text in texts if (query, text) not in self._scores))
        found = self._reranker.score(query, new, deadline) if new else []
        self._scores.update({(query, text): score for text, score in zip(new, found, strict=True)})
        return [self._scores[query, text] for text in texts]
