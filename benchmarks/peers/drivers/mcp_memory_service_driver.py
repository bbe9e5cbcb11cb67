"""mcp-memory-service: its SQLite storage and its hybrid search (BM25 by FTS5, and sqlite-vec)."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Sequence
from pathlib import Path
from typing import Any

import numpy as np

# Its docs offer two fusions; this one, not the default, answers better here. Read at import.
os.environ["MCP_HYBRID_FUSION_METHOD"] = "rrf"

from mcp_memory_service.models.memory import Memory
from mcp_memory_service.storage.sqlite_vec import SqliteVecMemoryStorage
from mcp_memory_service.utils.hashing import generate_content_hash

from peers.drivers.driver import Document, Vector, serve, vectors_of


class Given:
    """Replaces its SentenceTransformer."""

    def encode(self, texts: Sequence[str], convert_to_numpy: bool = True) -> Any:
        return np.array(vectors_of(texts), dtype=np.float32)


class McpMemoryService:
    storage: Any

    def open(self, folder: Path, dimension: int, given: bool) -> None:
        self.loop = asyncio.new_event_loop()
        self.storage = SqliteVecMemoryStorage(str(folder / "memories.db"))
        if given:
            self.storage._initialize_embedding_model = self.take_given
        self.wait(self.storage.initialize())

    async def take_given(self) -> None:
        self.storage.embedding_model = Given()

    def wait(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.loop.run_until_complete(work)

    def add(self, documents: Sequence[Document]) -> None:
        """Add one document as its tool does, but keep it even if it resembles another."""
        memories = [
            Memory(one.text, generate_content_hash(one.text), metadata={"id": one.id})
            for one in documents
        ]
        if len(memories) > 1:
            stored = self.wait(self.storage.store_batch(memories))
        else:
            stored = [self.wait(self.storage.store(memories[0], skip_semantic_dedup=True))]
        failed = [why for done, why in stored if not done and "uplicate" not in why]
        if failed:
            raise RuntimeError(failed[0])

    def finish(self) -> None:
        pass

    def search(self, text: str, vector: Vector, count: int) -> list[str]:
        found = self.wait(self.storage.retrieve_hybrid(text, n_results=count))
        return [one.memory.metadata["id"] for one in found]

    def held(self) -> list[str]:
        return [one.metadata["id"] for one in self.wait(self.storage.get_all_memories())]

    def close(self) -> None:
        self.wait(self.storage.close())


if __name__ == "__main__":
    serve(McpMemoryService())
