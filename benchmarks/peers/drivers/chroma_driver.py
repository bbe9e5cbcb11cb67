"""Chroma: a persistent client and one collection with cosine distance, without word search."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import chromadb

from peers.drivers.driver import Document, Vector, serve


class Chroma:
    collection: Any

    def open(self, folder: Path, dimension: int, given: bool) -> None:
        self.client = chromadb.PersistentClient(path=str(folder))
        self.collection = self.client.get_or_create_collection(
            "memories", configuration={"hnsw": {"space": "cosine"}}, embedding_function=None
        )

    def add(self, documents: Sequence[Document]) -> None:
        self.collection.add(
            ids=[one.id for one in documents],
            documents=[one.text for one in documents],
            embeddings=[one.vector for one in documents],
        )

    def finish(self) -> None:
        pass

    def search(self, text: str, vector: Vector, count: int) -> list[str]:
        found = self.collection.query(
            query_embeddings=[vector], n_results=count, include=["documents", "distances"]
        )
        return list(found["ids"][0])

    def held(self) -> list[str]:
        return list(self.collection.get(include=[])["ids"])

    def close(self) -> None:
        self.client.close()


if __name__ == "__main__":
    serve(Chroma())
