"""A dataset loaded into a store through the real write path, to be asked through the real read path."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from trivet.analyse import ANALYSER_VERSION
from trivet.clock import clock_set_to, parse_time
from trivet.contract import Recall, check
from trivet.errors import InvalidInput
from trivet.lab.dataset import Dataset, Document, Query
from trivet.lab.legs import CachedLegs
from trivet.memory.answer.decision import Decision
from trivet.memory.recall import Stopwatch, decide
from trivet.models.embed.registry import load
from trivet.settings import Settings
from trivet.trivet import Trivet
from trivet.types import Progress

# A run keeps this many documents a query, as deep as any measure looks.
DEPTH = 100
STORED_AT_ONCE = 500
LONGEST_TITLE = 300


class Bench:
    """A loaded dataset that can be asked. Legs are retrieved once for each way of retrieving and then kept."""

    def __init__(self, dataset: Dataset, trivet: Trivet) -> None:
        self.dataset = dataset
        self.trivet = trivet
        self.legs = CachedLegs()
        # Unless a question says when it is asked, it is asked when the last document was written.
        written = (parse_time(one.created_at, "created_at") for one in dataset.documents if one.created_at)
        self._asked_at = max(written, default=None)
        self._names = {memory_id(document.id): document.id for document in dataset.documents}

    def ask(
        self, query: Query, recipe: str, limit: int = DEPTH, watch: Stopwatch | None = None, **options: Any
    ) -> Decision:
        """What a recall would decide. The watch times the legs, which may be kept ones, apart from all that follows."""
        # Rankings are measured whole: what an answer leaves out as noise is measured by the lab's delivery.
        whole = {"relevance_at_least": 0.0, "limit": limit}
        arguments = {"query": query.text, "scope": query.scope, "recipe": recipe, **whole, **options}
        with self.at_the_time_of(query):
            return decide(self.trivet.engine, check(Recall, arguments), watch or Stopwatch(), self.legs.retrieve)

    def at_the_time_of(self, query: Query) -> AbstractContextManager[None]:
        """Within it, the clock shows when the query is asked: "last week" must mean the same in every run."""
        moment = query.asked_at or self._asked_at
        return clock_set_to(moment) if moment else nullcontext()

    def ranked(self, query: Query, recipe: str, limit: int = DEPTH, **options: Any) -> list[tuple[str, float]]:
        """The documents found, best first, under the dataset's own ids."""
        hits = self.ask(query, recipe, limit, **options).hits
        return [(self._names[hit.memory.id], hit.score) for hit in hits]

    def name_of(self, id: str) -> str:
        return self._names[id]

    def close(self) -> None:
        self.trivet.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open_bench(
    dataset: Dataset,
    folder: Path | None = None,
    embedder: str = "bundled",
    progress: Progress | None = None,
    **settings: Any,
) -> Bench:
    """Opens the store of a dataset. It is made on first use and kept, since loading is slow.

    Rankings are measured without the second look of `rerank = auto`, unless the caller or a recipe wants it: it judges
    rather than finds, and would be most of the time of a sweep.
    """
    folder = folder or cache_folder()
    folder.mkdir(parents=True, exist_ok=True)
    path = str(folder / _file_name(dataset, embedder))
    chosen = {"rerank": "off", **settings}
    trivet = Trivet.open(settings=Settings(path=path, embedder=embedder, background=False, **chosen))
    try:
        _load(dataset, trivet, progress)
    except BaseException:
        trivet.close()
        raise
    return Bench(dataset, trivet)


def cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "trivet" / "lab"


def memory_id(document_id: str) -> str:
    """The memory's UUID for a document, whose id has the dataset's own form."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"trivet-lab:{document_id}"))


def _file_name(dataset: Dataset, embedder: str) -> str:
    """One store for each content, model (by its identity: `bundled` may name another one later) and analyser."""
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
    # Not only what is due: a run that was killed may have taken some and left them. No corpus has facts that change, so
    # nothing is compared.
    trivet.engine.store.jobs.retry_now()
    trivet.engine.store.graph.retry_now("rules")
    trivet.engine.worker.drain(progress)
    _link(dataset.documents, trivet)
    waiting = trivet.stats()
    if waiting.not_embedded:
        reason = waiting.last_error or "another run is embedding them. Wait for its end, then try again"
        raise InvalidInput(f"{waiting.not_embedded} documents are not embedded yet: {reason}")


def _batches(documents: Sequence[Document]) -> Iterator[Sequence[Document]]:
    for start in range(0, len(documents), STORED_AT_ONCE):
        yield documents[start : start + STORED_AT_ONCE]


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
