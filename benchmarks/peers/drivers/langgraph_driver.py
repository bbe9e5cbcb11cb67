"""LangGraph: its SQLite store with a vector index over the text."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from langgraph.store.base import PutOp
from langgraph.store.sqlite import SqliteStore

from peers.drivers.driver import Document, Vector, serve, vectors_of

NAMESPACE = ("memories",)


class LangGraph:
    store: Any

    def open(self, folder: Path, dimension: int, given: bool) -> None:
        self.opened = ExitStack()
        index = {"dims": dimension, "embed": vectors_of}
        path = str(folder / "store.db")
        self.store = self.opened.enter_context(SqliteStore.from_conn_string(path, index=index))
        self.store.setup()

    def add(self, documents: Sequence[Document]) -> None:
        self.store.batch(
            [PutOp(NAMESPACE, one.id, {"text": one.text}, index=["text"]) for one in documents]
        )

    def finish(self) -> None:
        pass

    def search(self, text: str, vector: Vector, count: int) -> list[str]:
        return [item.key for item in self.store.search(NAMESPACE, query=text, limit=count)]

    def held(self) -> list[str]:
        return [item.key for item in self.store.search(NAMESPACE, limit=1_000_000)]

    def close(self) -> None:
        self.opened.close()


if __name__ == "__main__":
    serve(LangGraph())
