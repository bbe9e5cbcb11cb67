"""mem0 without a language model: texts are stored unchanged (infer=False), in local Qdrant.

Its word search downloads a list of stop words; here it comes from the package `stop-words`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fastembed.sparse.bm25 import Bm25
from stop_words import get_stop_words

from peers.drivers.driver import Document, Vector, serve, vectors_of

USER = {"user_id": "user"}
# It requires a key, although no model is called.
os.environ["OPENAI_API_KEY"] = "none"


class Given:
    """Replaces its embedder."""

    def embed(self, text: str, memory_action: str | None = None) -> Vector:
        return vectors_of([text])[0]

    def embed_batch(self, texts: Sequence[str], memory_action: str | None = None) -> list[Vector]:
        return vectors_of(texts)


class Mem0:
    memory: Any

    def open(self, folder: Path, dimension: int, given: bool) -> None:
        from mem0 import Memory

        qdrant = {
            "path": str(folder / "qdrant"),
            "embedding_model_dims": dimension,
            "on_disk": True,
        }
        history = str(folder / "history.db")
        self.memory = Memory.from_config(
            {"vector_store": {"provider": "qdrant", "config": qdrant}, "history_db_path": history}
        )
        self.memory.embedding_model = Given()
        self.memory.vector_store._bm25_encoder = Bm25(
            "Qdrant/bm25", specific_model_path=str(folder), stopwords=set(get_stop_words("english"))
        )

    def add(self, documents: Sequence[Document]) -> None:
        for one in documents:
            self.memory.add(one.text, **USER, infer=False, metadata={"document": one.id})

    def finish(self) -> None:
        pass

    def search(self, text: str, vector: Vector, count: int) -> list[str]:
        found = self.memory.search(text, top_k=count, filters=USER)
        return [one["metadata"]["document"] for one in found["results"]]

    def held(self) -> list[str]:
        found = self.memory.get_all(filters=USER, top_k=1_000_000)
        return [one["metadata"]["document"] for one in found["results"]]

    def close(self) -> None:
        self.memory.vector_store.client.close()


if __name__ == "__main__":
    serve(Mem0())
