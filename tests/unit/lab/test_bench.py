"""A bench asks a dataset through the real read path, independent of the current date."""

from __future__ import annotations

from pathlib import Path

import pytest

from trivet import InvalidInput
from trivet.lab.datasets.dataset import Dataset, Document, Query
from trivet.lab.measure.bench import open_bench


def test_questions_are_asked_at_time_of_last_document(tmp_path: Path) -> None:
    documents = (
        Document(id="old", text="We decide, and decide again.", created_at="2024-01-05"),
        Document(
            id="asked",
            text="A long text about the fence that we had to decide on.",
            created_at="2024-03-06",
        ),
        Document(id="last", text="A gate.", created_at="2024-03-13T10:00:00Z"),
    )
    query = Query(id="q", text="what did we decide last week")
    dataset = Dataset(name="weeks", documents=documents, queries=(query,), judgements=())
    with open_bench(dataset, tmp_path, embedder="none") as bench:
        assert bench.ranked(query, "default")[0][0] == "asked"
        assert bench.ranked(query, "time(0)")[0][0] == "old"


def test_missing_vectors_are_reported_with_reason(tmp_path: Path) -> None:
    dataset = Dataset(
        name="away", documents=(Document(id="d", text="A gate."),), queries=(), judgements=()
    )
    with pytest.raises(
        InvalidInput,
        match=r"1 documents are not embedded yet: openai:m: .*check that the server is running",
    ):
        open_bench(dataset, tmp_path, embedder="openai:m@http://127.0.0.1:9/v1")
