"""LanceDB: hybrid search by its full-text index and vectors, fused by its RRF reranker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import lancedb
import pyarrow
from lancedb.index import FTS
from lancedb.rerankers import RRFReranker

from peers.drivers.driver import Document, Vector, serve


class LanceDB:
    table: Any

    def open(self, folder: Path, dimension: int, given: bool) -> None:
        database = lancedb.connect(str(folder))
        vector = pyarrow.list_(pyarrow.float32(), dimension)
        schema = pyarrow.schema(
            [("id", pyarrow.string()), ("text", pyarrow.string()), ("vector", vector)]
        )
        self.table = database.create_table("memories", schema=schema, exist_ok=True)
        if not self.table.list_indices():
            self.table.create_index("text", config=FTS())
        self.reranker = RRFReranker()

    def add(self, documents: Sequence[Document]) -> None:
        self.table.add(
            [{"id": one.id, "text": one.text, "vector": one.vector} for one in documents]
        )

    def finish(self) -> None:
        """Add the new rows to the word index, as the manual says.

        This few vectors need no index.
        """
        self.table.optimize()

    def search(self, text: str, vector: Vector, count: int) -> list[str]:
        query = (
            self.table.search(query_type="hybrid").vector(vector).text(text).distance_type("cosine")
        )
        found = query.rerank(self.reranker).limit(count).select(["id", "text"]).to_list()
        return [row["id"] for row in found]

    def held(self) -> list[str]:
        return list(self.table.to_arrow()["id"].to_pylist())

    def close(self) -> None:
        pass


if __name__ == "__main__":
    serve(LanceDB())
