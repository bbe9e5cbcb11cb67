"""Memories without a stored vector still take part in recall by meaning."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from trivet import Trivet
from trivet.errors import EmbedderError
from trivet.models.embed.onnx import OnnxEmbedder, Runtime
from trivet.search.embedding import Embedding

SERVICES = tuple(
    f"Service {name} listens on port 80{place} behind the proxy."
    for place, name in enumerate("abcdef")
)
QUESTION = "where does our billing stand-in answer?"
TARGET = "The fake invoice server is reachable at port 9777."


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Trivet]:
    with Trivet.open(tmp_path / "m.db", background=False) as opened:
        opened.remember_many({"content": text} for text in SERVICES)
        opened.drain()
        yield opened


def test_new_memory_ranks_as_it_will_once_embedded(memory: Trivet) -> None:
    id = memory.remember(TARGET).id
    at_once = memory.recall(QUESTION)
    memory.drain()
    later = memory.recall(QUESTION)
    assert at_once.hits[0].id == later.hits[0].id == id
    assert at_once.hits[0].relevance == pytest.approx(later.hits[0].relevance, abs=0.01)
    assert at_once.hits[0].why.legs["dense"].score == pytest.approx(
        later.hits[0].why.legs["dense"].score, abs=0.01
    )


@pytest.fixture
def comparing(memory: Trivet) -> Iterator[Trivet]:
    """The same store with comparison on save."""
    with Trivet.open(memory.settings.path, background=False, changes="words") as opened:
        opened.recall(QUESTION)
        yield opened


@pytest.fixture
def token_counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Token counts of the model's runs."""
    found: list[int] = []
    run = Runtime.vector_of

    def counted(runtime: Runtime, ids: list[int]) -> NDArray[np.float32]:
        found.append(len(ids))
        return run(runtime, ids)

    monkeypatch.setattr(Runtime, "vector_of", counted)
    return found


def test_saved_and_recalled_text_is_embedded_once(
    comparing: Trivet, token_counts: list[int]
) -> None:
    comparing.remember(TARGET)
    assert len(token_counts) == 1
    comparing.recall("an invoice")
    assert len(token_counts) == 2  # The query.
    comparing.drain()
    assert len(token_counts) == 2
    assert comparing.recall(QUESTION).health.not_embedded == 0


def test_titled_text_is_embedded_for_the_first_recall(
    comparing: Trivet, token_counts: list[int]
) -> None:
    comparing.remember(TARGET, title="Invoices")
    assert len(token_counts) == 1
    comparing.recall(QUESTION)  # The query's vector is cached.
    assert len(token_counts) == 2
    comparing.drain()
    assert len(token_counts) == 2


def test_separate_query_prompt_needs_a_document_embedding(
    comparing: Trivet, token_counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OnnxEmbedder, "queries_as_documents", False)
    comparing.remember(TARGET)
    comparing.drain()
    assert len(token_counts) == 2


def test_invisible_memory_is_not_embedded_for_a_caller(memory: Trivet) -> None:
    memory.remember(TARGET, scope="other")
    assert TARGET not in [
        hit.content for hit in memory.recall(QUESTION, scope="default", relevance_at_least=0).hits
    ]


def test_sensitive_memory_gets_an_estimated_dense_score(memory: Trivet) -> None:
    id = memory.remember("The alarm code of the cabin is under the mat.", sensitive=True).id
    first = memory.recall("alarm code of the cabin").hits[0]
    assert first.id == id
    assert first.why.legs["dense"].estimated
    plain = memory.recall("service a port").hits[0]
    assert not plain.why.legs["dense"].estimated


def test_new_memory_is_in_the_graph_at_once(memory: Trivet) -> None:
    memory.remember("Priya Raman keeps the keys of the Lindenhof workshop.")
    memory.remember("The Lindenhof workshop has a new kiln.")
    answer = memory.recall("What does Priya Raman keep the keys of, and what is new there?")
    assert all("graph" in hit.why.legs for hit in answer.hits[:2])
    id = memory.remember("Something about Oslo.").id
    memory.edit(id, content="Something about Bergen.")
    assert memory.concepts("bergen").concepts
    assert not memory.concepts("oslo").concepts


def test_failing_embedder_is_a_note_and_recall_succeeds(
    memory: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    id = memory.remember(TARGET).id

    def broken(*_: object, **__: object) -> None:
        raise EmbedderError("the model's file is gone")

    monkeypatch.setattr(Embedding, "document_vectors", broken)
    answer = memory.recall("fake invoice server port")
    assert answer.hits[0].id == id
    assert answer.hits[0].why.legs["dense"].estimated
    assert any("the model's file is gone" in note for note in answer.health.notes)
