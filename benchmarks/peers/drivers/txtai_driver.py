"""txtai: a hybrid index (BM25 and vectors) with content, saved after every write."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from txtai import Embeddings

from peers.drivers.driver import Document, Vector, serve, vectors_of

# An index stores its function's name, which txtai resolves only if this allows it.
os.environ["ALLOW_RESOLVE_TRANSFORM"] = "True"
TRANSFORM = "peers.drivers.txtai_driver.transform"


def transform(texts: Sequence[str]) -> list[Vector]:
    return vectors_of(texts)


class Txtai:
    embeddings: Any

    def open(self, folder: Path, dimension: int, given: bool) -> None:
        self.path = str(folder / "index")
        self.embeddings = Embeddings(
            method="external", transform=TRANSFORM, hybrid=True, content=True
        )
        if self.embeddings.exists(self.path):
            self.embeddings.load(self.path)

    def add(self, documents: Sequence[Document]) -> None:
        self.embeddings.upsert([(one.id, one.text, None) for one in documents])
        self.embeddings.save(self.path)

    def finish(self) -> None:
        pass

    def search(self, text: str, vector: Vector, count: int) -> list[str]:
        return [row["id"] for row in self.embeddings.search(text, count)]

    def held(self) -> list[str]:
        found = (
            self.embeddings.search("select id from txtai", self.embeddings.count())
            if self.embeddings.ann
            else []
        )
        return [row["id"] for row in found]

    def close(self) -> None:
        self.embeddings.close()


if __name__ == "__main__":
    serve(Txtai())
