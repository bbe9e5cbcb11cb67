"""What a server's processes share is opened before they are forked: the bundled models that its settings ask for."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from trivet.models.embed.onnx import bundled
from trivet.models.rerank import local as onnx
from trivet.models.rerank.registry import RerankSpec, load
from trivet.serve.http.preload import bundled_models, open_models
from trivet.settings import Settings


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        (Settings(), ["embedder", "changes", "auto"]),
        (Settings(rerank="fast", changes="words"), ["embedder", "fast"]),
        (Settings(rerank="off", changes="off", embedder="none"), []),
        (Settings(rerank="folder:/somewhere", changes="off", embedder="folder:/elsewhere"), []),
    ],
)
def test_the_models_that_the_settings_ask_for(settings: Settings, names: list[str]) -> None:
    assert bundled_models(settings) == names


def test_who_asks_later_has_the_model_that_was_opened() -> None:
    open_models(["embedder", "fast"])
    assert bundled()._opened is not None
    reranker = load(RerankSpec("fast"))
    assert isinstance(reranker, onnx.OnnxReranker)
    assert reranker._opened is not None
    assert load(RerankSpec("fast")) is reranker


def test_a_model_that_cannot_be_opened_is_told_and_costs_nothing_else(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(onnx, "WEIGHTS", tmp_path)
    with caplog.at_level(logging.WARNING):
        open_models(["best", "embedder"])
    assert (
        "The model best is not shared by the processes of the server: this installation comes without"
        in caplog.text
    )
    assert bundled()._opened is not None
