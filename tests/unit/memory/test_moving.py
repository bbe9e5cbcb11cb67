"""A store moves to another bundled model when that is there, while recalls go on."""

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

from support.opened import Opened
from support.second_model import MINILM, SECOND_EMBEDDER
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


Arrive = Callable[[], Path]


@pytest.fixture
def arrive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Arrive:
    """Until it is called, `bundled` is all-MiniLM-L6-v2, as in the first releases; then another one has its place."""
    monkeypatch.setattr(onnx, "OURS", MINILM)

    def next_release() -> Path:
        make_model(tmp_path / "embedder")
        monkeypatch.setattr(onnx, "OURS", tmp_path / "embedder")
        return tmp_path / "embedder"

    return next_release


def make_model(folder: Path) -> None:
    """Its vectors are of another width: to mix them up is an error, not a bad answer."""
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


def test_bundled_becomes_the_model_of_the_next_release(open_trivet: Opened, arrive: Arrive) -> None:
    assert "MiniLM" in (filled(open_trivet(embedder="bundled")).stats().embedder or "")
    arrive()
    trivet = open_trivet(embedder="bundled")
    trivet.drain()
    assert (trivet.stats().embedder or "").startswith("trivet-embedder/")
    chosen = open_trivet(embedder=SECOND_EMBEDDER)
    assert chosen.drain() == 0, "never back again by itself"
    assert (chosen.stats().embedder or "").startswith("trivet-embedder/")
    assert chosen.reindex() == len(NOTES)
    assert "MiniLM" in (chosen.stats().embedder or "")
    assert trivet.drain() == 0
    assert "MiniLM" in (trivet.stats().embedder or ""), (
        "nor forward again, where the owner has chosen it by name"
    )


def test_the_old_vectors_answer_with_their_own_model_until_the_new_are_there(
    open_trivet: Opened, arrive: Arrive
) -> None:
    filled(open_trivet(embedder="bundled"))
    arrive()
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


def test_recalls_go_on_while_a_store_moves(open_trivet: Opened, arrive: Arrive) -> None:
    first = filled(open_trivet(embedder="bundled"))
    first.remember_many(
        {"content": f"Note {number} about gardens and rivers."} for number in range(80)
    )
    first.drain()
    arrive()
    trivet = open_trivet(embedder="bundled", earlier_embedders=[SECOND_EMBEDDER])
    answers: list[Answer] = []
    begun, over = threading.Event(), threading.Event()

    def ask() -> None:
        while not over.is_set():
            # Another text each time, so that no vector is at hand, and no number that a note has.
            answers.append(trivet.recall("staging database port" + "?" * len(answers)))
            begun.set()

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        assert begun.wait(60)
        trivet.drain()
        last = trivet.recall("staging database port")
    finally:
        over.set()
        ended(asking)
    assert not [answer.health for answer in answers if answer.health.degraded]
    assert {answer.hits[0].content for answer in answers} == {NOTES[0]}
    assert (answers[0].health.embedder or "").startswith("all-MiniLM-L6-v2/")
    assert (last.health.embedder or "").startswith("trivet-embedder/")


def test_vectors_whose_model_is_gone_are_told_of_and_words_still_find(
    open_trivet: Opened, arrive: Arrive
) -> None:
    ours = arrive()
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
    assert "is not asked" in (dense.reason or "")
    trivet.reindex(lexical=False, graph=False)
    assert not trivet.recall("staging port").health.degraded


@pytest.mark.parametrize("named", ["bundled", "stock"])
def test_a_store_of_minilm_moves_to_the_model_that_ships_and_words_find_until_then(
    open_trivet: Opened, path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    with monkeypatch.context() as first_releases:
        first_releases.setattr(onnx, "OURS", MINILM)
        before = filled(open_trivet(embedder="bundled"))
        before.close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE embedding_model SET spec = ?", (named,))
    trivet = open_trivet(embedder="bundled")
    answer = trivet.recall("staging port")
    assert answer.hits[0].content == NOTES[0]
    assert answer.health.embedder == onnx.bundled().identity, "nothing can ask the old vectors"
    assert trivet.stats().not_embedded == len(NOTES)
    trivet.drain()
    answer = trivet.recall(PARAPHRASE, recipe="legs(dense)")
    assert answer.hits[0].content == NOTES[1]
    assert not answer.health.degraded
