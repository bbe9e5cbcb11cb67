"""Bundled weights are memory-mapped and equal the original models."""

from __future__ import annotations

import sys
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, TensorProto

from trivet.models import WEIGHTS
from trivet.models.embed.onnx import OnnxEmbedder, described
from trivet.models.onnx import MAPPED

MODELS = sorted(folder for folder in WEIGHTS.iterdir() if (folder / "model.onnx").exists())


@pytest.mark.parametrize("folder", MODELS, ids=lambda folder: folder.name)
def test_mapped_model_equals_original(folder: Path) -> None:
    """After a model changes, scripts/map_weights.py must write both files again."""
    mapped = onnx.load(folder / MAPPED, load_external_data=False)
    tables = [
        one for one in mapped.graph.initializer if _place(one).get("location") == "model.onnx"
    ]
    assert len(tables) > 10
    for table in tables:
        _inline_weights(table, (folder / "model.onnx").read_bytes())
    assert _graph(mapped) == _graph(onnx.load(folder / "model.onnx", load_external_data=False))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells what a process has mapped")
def test_open_model_is_memory_mapped() -> None:
    folder = WEIGHTS / "embedder"
    embedder = OnnxEmbedder(described(folder))
    embedder.open()
    assert str(folder / "model.onnx") in Path("/proc/self/maps").read_text()


def test_unmappable_model_is_loaded_with_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for file in (WEIGHTS / "embedder").iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / MAPPED).unlink()
    (tmp_path / MAPPED).write_bytes(b"of a later version")
    found = OnnxEmbedder(described(tmp_path)).embed_query("where is the harbour office")
    assert (
        found.tolist()
        == OnnxEmbedder(described(WEIGHTS / "embedder"))
        .embed_query("where is the harbour office")
        .tolist()
    )
    assert "is loaded whole" in caplog.text


def _place(table: TensorProto) -> dict[str, str]:
    return {entry.key: entry.value for entry in table.external_data}


def _inline_weights(table: TensorProto, whole: bytes) -> None:
    place = _place(table)
    start = int(place["offset"])
    table.raw_data = whole[start : start + int(place["length"])]
    table.ClearField("external_data")
    table.ClearField("data_location")


def _graph(model: ModelProto) -> bytes:
    whole: bytes = model.SerializeToString(deterministic=True)
    return whole
