"""A dataset in a real store, loaded and queried through the product's own paths."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import msgspec

from trivet.analyse import ANALYSER_VERSION
from trivet.common.clock import clock_fixed_at, parse_time
from trivet.contract import Recall, check
from trivet.errors import InvalidInput
from trivet.lab.datasets.dataset import Dataset, Document, Query
from trivet.lab.datasets.plain_layout import lab_folder
from trivet.lab.measure.complete_retrieval import (
    CachedLegs,
    asked,
    measuring_engine,
    require_complete,
    without_time_limits,
)
from trivet.lab.measure.hit_analysis import count_words
from trivet.memory.answer.decision import Decision, Stopwatch
from trivet.memory.answer.retrieve import Retrieve
from trivet.memory.engine import Engine, open_engine
from trivet.memory.recall import decide, rank
from trivet.models.embed.registry import load
from trivet.models.rerank.registry import OFF, Reranker, Rerankers, RerankSpec
from trivet.settings import Settings
from trivet.trivet import Trivet
from trivet.types import Progress

# Documents per query: as deep as any measure looks.
DEPTH = 100
DOCUMENTS_PER_BATCH = 500
# Rounds without progress before giving up: another run may have leased all pending jobs.
MAX_IDLE_ROUNDS = 3
LONGEST_TITLE = 300


class Bench:
    """A loaded dataset; legs are retrieved once and cached."""

    def __init__(self, dataset: Dataset, trivet: Trivet) -> None:
        self.dataset = dataset
        self.trivet = trivet
        self.legs = CachedLegs()
        # Queries without a time are asked when the last document was written.
        written = (
            parse_time(one.created_at, "created_at") for one in dataset.documents if one.created_at
        )
        self._asked_at = max(written, default=None)
        self._names = {memory_id(document.id): document.id for document in dataset.documents}

    @cached_property
    def words(self) -> Mapping[str, int]:
        return {document.id: count_words(document.text) for document in self.dataset.documents}

    def ask(
        self,
        query: Query,
        recipe: str,
        limit: int = DEPTH,
        watch: Stopwatch | None = None,
        *,
        engine: Engine | None = None,
        retrieve: Retrieve | None = None,
        judge: bool = True,
        **options: Any,
    ) -> Decision:
        """Run a recall and raise if a leg does not answer.

        `watch` times the legs, which may be cached. `engine` and `retrieve` add another system's
        rankings.
        """
        # Rankings are measured whole; `trivet lab delivery` measures what an answer leaves out.
        whole = {"relevance_at_least": 0.0, "limit": limit}
        request = check(
            Recall,
            {"query": query.text, "scope": query.scope, "recipe": recipe, **whole, **options},
        )
        with self.clock_at_query_time(query), asked(query.id):
            chosen = engine or self.trivet.engine
            decision = (decide if judge else rank)(
                chosen, request, watch or Stopwatch(), retrieve or self.legs.retrieve
            )
            require_complete(decision)
            return decision

    def clock_at_query_time(self, query: Query) -> AbstractContextManager[None]:
        """Fix the clock at the query's time: "last week" must stay the same."""
        moment = query.asked_at or self._asked_at
        return clock_fixed_at(moment) if moment else nullcontext()

    def ranked(
        self, query: Query, recipe: str, limit: int = DEPTH, **options: Any
    ) -> list[tuple[str, float]]:
        hits = self.ask(query, recipe, limit, judge=False, **options).hits
        return [(self._names[hit.memory.id], hit.score) for hit in hits]

    def name_of(self, id: str) -> str:
        return self._names[id]

    def close(self) -> None:
        self.trivet.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def open_bench(
    dataset: Dataset,
    folder: Path | None = None,
    embedder: str = "bundled",
    progress: Progress | None = None,
    **settings: Any,
) -> Bench:
    """Open the dataset's store, created on first use.

    `rerank` is off by default: it would dominate the time.
    """
    folder = folder or lab_folder()
    folder.mkdir(parents=True, exist_ok=True)
    path = str(folder / _file_name(dataset, embedder))
    chosen = {"rerank": "off", **settings}
    engine = open_engine(
        without_time_limits(Settings(path=path, embedder=embedder, background=False, **chosen))
    )
    trivet = Trivet.of(measuring_engine(engine))
    try:
        _load(dataset, trivet, progress)
    except BaseException:
        trivet.close()
        raise
    return Bench(dataset, trivet)


def memory_id(document_id: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"trivet-lab:{document_id}"))


def _file_name(dataset: Dataset, embedder: str) -> str:
    """Name one store per content, analyzer and model (by identity: an alias may change)."""
    loaded = load(embedder)
    identity = loaded.identity if loaded is not None and loaded.local else embedder
    model = uuid.uuid5(uuid.NAMESPACE_URL, identity).hex[:8]
    return f"{dataset.name}-{dataset.fingerprint[:12]}-{model}-a{ANALYSER_VERSION}.db"


def _load(dataset: Dataset, trivet: Trivet, progress: Progress | None) -> None:
    have = sum(trivet.stats().memories.values())
    for batch in _batches(dataset.documents[have:]):
        trivet.remember_many([_memory(document) for document in batch])
        if progress is not None:
            progress(len(batch))
    _finish(trivet, progress)
    _link(dataset.documents, trivet)


def _finish(trivet: Trivet, progress: Progress | None) -> None:
    """Embed and read all documents, including jobs that a killed run left leased."""
    store, worker = trivet.engine.store, trivet.engine.worker
    fruitless = 0
    while fruitless < MAX_IDLE_ROUNDS:
        store.jobs.retry_now()
        store.graph.retry_now("rules")
        embedded = worker.drain(progress)
        waiting, unread = trivet.stats(), store.graph.backlog("rules")
        if not waiting.not_embedded and not unread.waiting:
            return
        if waiting.last_error or unread.last_error:
            break
        fruitless = 0 if embedded else fruitless + 1
    reason = (
        waiting.last_error
        or unread.last_error
        or "several attempts made no progress, and no error was recorded"
    )
    counts = {
        "are not embedded yet": waiting.not_embedded,
        "are not read for the graph yet": unread.waiting,
    }
    what = " and ".join(f"{count} documents {what}" for what, count in counts.items() if count)
    raise InvalidInput(f"{what}: {reason}")


def _batches(documents: Sequence[Document]) -> Iterator[Sequence[Document]]:
    for start in range(0, len(documents), DOCUMENTS_PER_BATCH):
        yield documents[start : start + DOCUMENTS_PER_BATCH]


def _memory(document: Document) -> Mapping[str, Any]:
    given = {
        "title": document.title[:LONGEST_TITLE] if document.title else None,
        "scope": document.scope,
        "created_at": document.created_at,
        "importance": document.importance,
        "category": document.category,
    }
    return {
        "id": memory_id(document.id),
        "content": document.text,
        "tags": document.tags,
        "expanded_keywords": document.expanded_keywords,
        "sensitive": document.sensitive,
        **{name: value for name, value in given.items() if value is not None},
    }


def _link(documents: Sequence[Document], trivet: Trivet) -> None:
    for document in documents:
        for link in document.links:
            trivet.link(memory_id(document.id), link.kind, memory_id(link.to))


def with_cached_reranking(bench: Bench) -> Bench:
    """Return a bench with cached reranking, for untimed runs; close only the original."""
    engine = bench.trivet.engine
    return Bench(
        bench.dataset,
        Trivet(msgspec.structs.replace(engine, rerankers=CachedRerankers(engine.rerankers))),
    )


class CachedRerankers(Rerankers):
    def __init__(self, rerankers: Rerankers) -> None:
        super().__init__(RerankSpec(OFF))
        self.setting = rerankers.setting
        self._rerankers = rerankers
        self._kept: dict[str, CachedReranker] = {}

    def named(self, kind: str) -> Reranker:
        reranker = self._rerankers.named(kind)
        return (
            self._kept.setdefault(reranker.identity, CachedReranker(reranker))
            if reranker.local
            else reranker
        )

    def resting(self, kind: str) -> str | None:
        return self._rerankers.resting(kind)

    def late(self, kind: str) -> None:
        self._rerankers.late(kind)


class CachedReranker:
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
