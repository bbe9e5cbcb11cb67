"""MemPalace: drawers stored and searched as its tools do, vectors re-ranked with BM25.

`union` also admits candidates found only by words.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from peers.drivers.driver import Document, Vector, serve, vectors_of

WING, ROOM = "memories", "all"


class Given:
    """Replaces its ONNX model of the same name."""

    def __call__(self, input: Sequence[str]) -> list[Vector]:
        return vectors_of(list(input))

    embed_query = __call__

    @staticmethod
    def name() -> str:
        return "default"

    def get_config(self) -> dict[str, Any]:
        return {}


class MemPalace:
    def open(self, folder: Path, dimension: int, given: bool) -> None:
        self.palace = str(folder / "palace")
        os.environ["MEMPALACE_PALACE_PATH"] = self.palace
        os.environ["MEMPALACE_EMBEDDING_MODEL"] = "minilm"
        import mempalace.embedding

        if given:
            mempalace.embedding.get_embedding_function = lambda *_, **__: Given()
        from mempalace import mcp_server, searcher

        self.server, self.searcher = mcp_server, searcher

    def add(self, documents: Sequence[Document]) -> None:
        """Add many short texts as its miner does, and a single or long one as its tool does."""
        short = [one for one in documents if len(one.text) <= self.server._config.chunk_size]
        if len(short) > 1:
            self._file(short)
        for one in documents if len(short) <= 1 else [one for one in documents if one not in short]:
            done = self.server.tool_add_drawer(WING, ROOM, one.text, source_file=one.id)
            if not done["success"]:
                raise RuntimeError(done["error"])

    def _file(self, documents: Sequence[Document]) -> None:
        filed = {
            "wing": WING,
            "room": ROOM,
            "chunk_index": 0,
            "filed_at": datetime.now().isoformat(),
        }
        self.server._get_collection(create=True).upsert(
            ids=[f"drawer_{one.id}" for one in documents],
            documents=[one.text for one in documents],
            metadatas=[{**filed, "source_file": one.id} for one in documents],
        )

    def finish(self) -> None:
        pass

    def search(self, text: str, vector: Vector, count: int) -> list[str]:
        found = self.searcher.search_memories(
            text, self.palace, n_results=count, candidate_strategy="union"
        )
        if "error" in found:
            raise RuntimeError(found["error"])
        return [hit["source_path"] for hit in found["results"]]

    def held(self) -> list[str]:
        collection = self.server._get_collection(create=True)
        return [meta["source_file"] for meta in collection.get(include=["metadatas"]).metadatas]

    def close(self) -> None:
        pass


if __name__ == "__main__":
    serve(MemPalace())
