"""The bundled model finds paraphrases without network or key."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.waiting import happened
from trivet import EmbedderError, Trivet
from trivet.models.embed.onnx import Runtime, bundled
from trivet.models.onnx import Tokens
from trivet.store.relational.index.graph_index import GraphIndex
from trivet.store.relational.index.lexical import LexicalIndex

NOTES = [
    "The staging database listens on port 6543.",
    "Grandmother's soup needs carrots, leek and two hours of patience.",
    "Rotate the signing certificate every ninety days.",
    "The cat sleeps on the warm radiator all winter.",
    "Deployments are frozen during the last week of December.",
]
# Ample for the lexical leg, which needs a few milliseconds even on a busy machine.
LEG_LIMIT_MS = 500
LONG = " ".join(
    f"Paragraph {number} describes how the village council discusses road repairs."
    for number in range(60)
)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trivet]:
    with Trivet.open(
        tmp_path_factory.mktemp("bundled") / "memory.db", embedder="bundled", background=False
    ) as trivet:
        trivet.remember_many({"content": note} for note in NOTES)
        trivet.remember(
            f"{LONG} A meteorite fell into the lake at midnight. {LONG}", title="Village"
        )
        trivet.drain()
        yield trivet


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("where does the pet rest when it is cold", 3),
        ("cooking a vegetable broth", 1),
        ("may I release software at Christmas", 4),
    ],
)
def test_paraphrase_is_found(store: Trivet, query: str, index: int) -> None:
    answer = store.recall(query)
    assert answer.hits[0].content == NOTES[index]
    assert not answer.health.degraded
    assert answer.hits[0].why.legs["dense"].rank == 1


def test_long_memory_shows_its_best_passage(store: Trivet) -> None:
    hit = next(
        hit
        for hit in store.recall("a rock from space crashed into the water").hits
        if hit.memory.title
    )
    assert hit.why.matched_words == ()
    assert "meteorite" in hit.passage
    assert len(hit.passage) < len(hit.content) / 2


def test_embedder_is_named_and_everything_is_embedded(store: Trivet) -> None:
    stats = store.stats()
    assert stats.embedder == bundled().identity
    assert stats.not_embedded == 0
    assert stats.passages > len(NOTES) + 1
    assert all(finding.ok for finding in store.doctor())


def test_exact_word_is_found(store: Trivet) -> None:
    assert store.recall("6543").hits[0].content == NOTES[0]


def test_close_does_not_wait_for_embedding(tmp_path: Path) -> None:
    with Trivet.open(tmp_path / "memory.db") as trivet:
        id = trivet.remember("written and closed at once").id
    with Trivet.open(tmp_path / "memory.db", background=False) as trivet:
        trivet.drain()
        assert [hit.id for hit in trivet.recall("closed").hits] == [id]


def test_word_search_runs_while_query_is_embedded(
    store: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    words_searched = threading.Event()
    search, run = LexicalIndex.search, Runtime.vector_of

    def recording_search(*arguments: Any) -> Any:
        found = search(*arguments)
        words_searched.set()
        return found

    def delayed_vector(runtime: Runtime, ids: list[int]) -> Any:
        happened(words_searched)  # Times out if the word search runs after embedding.
        return run(runtime, ids)

    monkeypatch.setattr(LexicalIndex, "search", recording_search)
    monkeypatch.setattr(Runtime, "vector_of", delayed_vector)
    answer = store.recall("which port has the staging database, by the way")
    assert [leg.answered for leg in answer.health.legs] == [True] * len(answer.health.legs)
    assert answer.hits[0].why.legs["dense"].rank == 1


def test_graph_lookup_runs_while_query_is_embedded(
    store: Trivet, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up = threading.Event()
    named, run = GraphIndex.named, Runtime.vector_of

    def recording_lookup(*arguments: Any) -> Any:
        looked_up.set()
        return named(*arguments)

    def delayed_vector(runtime: Runtime, ids: list[int]) -> Any:
        happened(looked_up)  # Times out if the graph lookup runs after the other legs.
        return run(runtime, ids)

    monkeypatch.setattr(GraphIndex, "named", recording_lookup)
    monkeypatch.setattr(Runtime, "vector_of", delayed_vector)
    answer = store.recall("does Grandmother's soup need carrots, I wonder")
    assert {leg.leg: leg.answered for leg in answer.health.legs}["dense"]


@pytest.mark.parametrize(("part", "step"), [(Tokens, "ids"), (Runtime, "vector_of")])
def test_model_failure_costs_only_the_dense_leg(
    store: Trivet, monkeypatch: pytest.MonkeyPatch, part: type, step: str
) -> None:
    def fail(*_: Any) -> Any:
        raise EmbedderError("the model is broken")

    monkeypatch.setattr(part, step, fail)
    answer = store.recall(f"what sleeps on the radiator, says nobody {step}")
    assert answer.hits[0].content == NOTES[3]
    reasons = {leg.leg: leg.reason for leg in answer.health.legs if not leg.answered}
    assert list(reasons) == ["dense"]
    assert "the model is broken" in (reasons["dense"] or "")


def test_slow_model_times_out(
    store: Trivet, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    resume, run = threading.Event(), Runtime.vector_of

    def delayed(runtime: Runtime, ids: list[int]) -> Any:
        happened(resume)
        return run(runtime, ids)

    with Trivet.open(
        tmp_path / "memory.db", background=False, leg_time_limit_ms=LEG_LIMIT_MS
    ) as trivet:
        trivet.remember(NOTES[3])
        trivet.drain()
        trivet.recall("warms up")
        monkeypatch.setattr(Runtime, "vector_of", delayed)
        answer = trivet.recall("what sleeps on the radiator in vain")
        resume.set()
    reasons = {leg.leg: leg.reason for leg in answer.health.legs if not leg.answered}
    assert reasons == {"dense": f"no answer within {LEG_LIMIT_MS} ms"}
    assert answer.hits[0].content == NOTES[3]
