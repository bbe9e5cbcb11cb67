"""Trivet: hybrid recall by words, vectors and the concept graph, with given or own vectors."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_URL, uuid5

import msgspec
import numpy as np

from peers.drivers.driver import Document, Vector, serve, vectors_of
from trivet import Trivet
from trivet.lab.measure.complete_retrieval import measuring_engine, without_time_limits
from trivet.memory.engine import Shared, open_engine
from trivet.models.embed.base import Embedder, Vectors
from trivet.settings import Settings

MODEL = Path(__file__).parents[3] / "tests" / "models" / "minilm"
PAGE = 100


class Given:
    """Replaces the model: cuts texts like it and looks vectors up."""

    def __init__(self, model: Embedder) -> None:
        self.model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def embed_documents(self, texts: Sequence[str]) -> Vectors:
        return np.array(vectors_of(texts), dtype=np.float32).reshape(len(texts), -1)

    def embed_queries(self, texts: Sequence[str]) -> Vectors:
        return self.embed_documents(texts)

    def embed_query(self, text: str) -> Vectors:
        vector: Vectors = self.embed_documents([text])[0]
        return vector


class TrivetPeer:
    """Trivet with its defaults.

    With given vectors it has no model, so it neither rereads hits nor compares memories, and shows
    ten hits as the others do.
    """

    trivet: Trivet
    answers: dict[str, Any]

    def open(self, folder: Path, dimension: int, given: bool) -> None:
        # Recall drops late legs; without time limits a busy machine does not change answers.
        embedder = f"folder:{MODEL}" if given else "bundled"
        settings = without_time_limits(
            Settings(path=str(folder / "memories.db"), embedder=embedder)
        )
        if given:
            settings = msgspec.structs.replace(settings, rerank="off", changes="off")
        shared = Shared.of(settings)
        if given and shared.embedder is not None:
            shared = msgspec.structs.replace(shared, embedder=Given(shared.embedder))
        self.trivet = Trivet.of(measuring_engine(open_engine(settings, shared)))
        self.answers = {"relevance_at_least": 0.0} if given else {}

    def add(self, documents: Sequence[Document]) -> None:
        self.trivet.remember_many(
            {"id": str(uuid5(NAMESPACE_URL, one.id)), "content": one.text, "source": one.id}
            for one in documents
        )

    def finish(self) -> None:
        while self.trivet.stats().not_embedded:
            self.trivet.drain()

    def settle(self) -> None:
        """Wait: after an import, memories are compared with their neighbors for minutes."""
        self.trivet.engine.worker.compare()

    def search(self, text: str, vector: Vector, count: int) -> list[str]:
        hits = self.trivet.recall(text, limit=count, **self.answers).hits
        return [hit.source.uri for hit in hits if hit.source]

    def held(self) -> list[str]:
        total = sum(self.trivet.stats().memories.values())
        pages = (self.trivet.list(limit=PAGE, offset=start) for start in range(0, total, PAGE))
        return [memory.source.uri for page in pages for memory in page.memories if memory.source]

    def close(self) -> None:
        self.trivet.close()


if __name__ == "__main__":
    serve(TrivetPeer())
