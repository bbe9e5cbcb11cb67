"""A store moves to another bundled model when one ships, while recalls continue."""

from __future__ import annotations

import hashlib
import json
import shutil
import sqlite3
import threading
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support.second_model import MINILM, SECOND_EMBEDDER
from support.store_fixtures import Opened
from support.waiting import ended
from trivet import Trivet
from trivet.models.embed import onnx
from trivet.types import Answer
from unit.models.embed.test_folder import token_model

NOTES = [
    "The staging database listens on port 6543.",
    "The cat sleeps on the radiator.",
    "Soup needs leek.",
]
PARAPHRASE = "where does the pet rest when it is cold"


ReleaseModel = Callable[[], Path]


@pytest.fixture
def release_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ReleaseModel:
    """Replace all-MiniLM-L6-v2, which is `bundled` until this is called."""
    monkeypatch.setattr(onnx, "OURS", MINILM)

    def next_release() -> Path:
        make_model(tmp_path / "embedder")
        monkeypatch.setattr(onnx, "OURS", tmp_path / "embedder")
        return tmp_path / "embedder"

    return next_release


def make_model(folder: Path) -> None:
    """Write a model of another dimension, so mixing vectors is an error."""
    folder.mkdir()
    shutil.copy(MINILM / "tokenizer.json", folder)
    token_model(folder / "model.onnx")
    sums = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("model.onnx", "tokenizer.json")
    }
    description = {
        "name": "trivet-embedder",
        "kind": "embedder",
        "dimension": 2,
        "max_tokens": 256,
        "sha256": sums,
    }
    (folder / "model.json").write_text(json.dumps(description))


def filled(trivet: Trivet) -> Trivet:
    trivet.remember_many({"content": note} for note in NOTES)
    trivet.drain()
    return trivet


def test_bundled_becomes_the_model_of_the_next_release(
    open_trivet: Opened, release_model: ReleaseModel
) -> None:
    assert "MiniLM" in (filled(open_trivet(embedder="bundled")).stats().embedder or "")
    release_model()
    trivet = open_trivet(embedder="bundled")
    trivet.drain()
    assert (trivet.stats().embedder or "").startswith("trivet-embedder/")
    chosen = open_trivet(embedder=SECOND_EMBEDDER)
    assert chosen.drain() == 0, "no automatic move back"
    assert (chosen.stats().embedder or "").startswith("trivet-embedder/")
    assert chosen.reindex() == len(NOTES)
    assert "MiniLM" in (chosen.stats().embedder or "")
    assert trivet.drain() == 0
    assert "MiniLM" in (trivet.stats().embedder or ""), (
        "no automatic move once the owner has chosen a model by name"
    )


def test_old_vectors_serve_until_new_ones_are_complete(
    open_trivet: Opened, release_model: ReleaseModel
) -> None:
    filled(open_trivet(embedder="bundled"))
    release_model()
    trivet = open_trivet(embedder="bundled", earlier_embedders=[SECOND_EMBEDDER])
    answer = trivet.recall(PARAPHRASE, recipe="legs(dense)")
    assert answer.hits[0].content == NOTES[1]
    assert not answer.health.degraded
    assert "MiniLM" in (answer.health.embedder or "")
    assert any("moving to trivet-embedder" in note for note in answer.health.notes)
    trivet.drain()
    health = trivet.recall(PARAPHRASE).health
    assert (health.embedder or "").startswith("trivet-embedder/")
    assert not health.degraded
    assert health.notes == ()


def test_recalls_continue_while_a_store_moves(
    open_trivet: Opened, release_model: ReleaseModel
) -> None:
    first = filled(open_trivet(embedder="bundled"))
    first.remember_many(
        {"content": f"Note {number} about gardens and rivers."} for number in range(80)
    )
    first.drain()
    release_model()
    trivet = open_trivet(embedder="bundled", earlier_embedders=[SECOND_EMBEDDER])
    answers: list[Answer] = []
    begun, over = threading.Event(), threading.Event()

    def ask() -> None:
        while not over.is_set():
            # A new text each time, so no query vector is cached.
            answers.append(trivet.recall("staging database port" + "?" * len(answers)))
            begun.set()

    asker = threading.Thread(target=ask)
    asker.start()
    try:
        assert begun.wait(60)
        trivet.drain()
        last = trivet.recall("staging database port")
    finally:
        over.set()
        ended(asker)
    assert not [answer.health for answer in answers if answer.health.degraded]
    assert {answer.hits[0].content for answer in answers} == {NOTES[0]}
    assert (answers[0].health.embedder or "").startswith("all-MiniLM-L6-v2/")
    assert (last.health.embedder or "").startswith("trivet-embedder/")


def test_missing_model_is_reported_and_words_still_find(
    open_trivet: Opened, release_model: ReleaseModel
) -> None:
    ours = release_model()
    filled(open_trivet(embedder="bundled"))
    token_model(ours / "model.onnx", output="token_embeddings")
    description = json.loads((ours / "model.json").read_text())
    description["sha256"]["model.onnx"] = hashlib.sha256(
        (ours / "model.onnx").read_bytes()
    ).hexdigest()
    (ours / "model.json").write_text(json.dumps(description))
    trivet = open_trivet(embedder="bundled")
    answer = trivet.recall("staging port")
    assert answer.hits[0].content == NOTES[0]
    dense = {leg.leg: leg for leg in answer.health.legs}["dense"]
    assert "is not called" in (dense.reason or "")
    trivet.reindex(lexical=False, graph=False)
    assert not trivet.recall("staging port").health.degraded


@pytest.mark.parametrize("spec", ["bundled", "stock"])
def test_minilm_store_moves_to_the_shipped_model(
    open_trivet: Opened, path: Path, monkeypatch: pytest.MonkeyPatch, spec: str
) -> None:
    with monkeypatch.context() as first_releases:
        first_releases.setattr(onnx, "OURS", MINILM)
        before = filled(open_trivet(embedder="bundled"))
        before.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE embedding_model SET spec = ?", (spec,))
    trivet = open_trivet(embedder="bundled")
    answer = trivet.recall("staging port")
    assert answer.hits[0].content == NOTES[0]
    assert answer.health.embedder == onnx.bundled().identity, "no model can query the old vectors"
    assert trivet.stats().not_embedded == len(NOTES)
    trivet.drain()
    answer = trivet.recall(PARAPHRASE, recipe="legs(dense)")
    assert answer.hits[0].content == NOTES[1]
    assert not answer.health.degraded
