"""The models a server needs are opened before its processes fork."""

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
def test_settings_select_bundled_models(settings: Settings, names: list[str]) -> None:
    assert bundled_models(settings) == names


def test_opened_models_are_reused() -> None:
    open_models(["embedder", "fast"])
    assert bundled()._opened is not None
    reranker = load(RerankSpec("fast"))
    assert isinstance(reranker, onnx.OnnxReranker)
    assert reranker._opened is not None
    assert load(RerankSpec("fast")) is reranker


def test_unopenable_model_is_logged_and_others_open(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(onnx, "WEIGHTS", tmp_path)
    with caplog.at_level(logging.WARNING):
        open_models(["best", "embedder"])
    assert "The worker processes cannot share the model best: this installation" in caplog.text
    assert bundled()._opened is not None
