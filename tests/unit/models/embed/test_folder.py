"""Model folders in several layouts load, and broken ones are named."""

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.second_model import MINILM
from trivet.errors import EmbedderError
from trivet.models.embed import load
from trivet.models.embed.base import Embedder
from trivet.models.embed.onnx import OnnxEmbedder

SIMPLE = ["Transformer", "Pooling", "Normalize"]
# Token ids of [CLS], "cats" and [SEP].
CATS = np.array([101, 8870, 102])


def loaded(folder: Path) -> Embedder:
    embedder = load(f"folder:{folder}")
    assert embedder is not None
    return embedder


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value))


def copy_model(folder: Path, name: str = "model.onnx") -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(MINILM / "model.onnx", folder / name)
    shutil.copy(MINILM / "tokenizer.json", folder)
    return folder


def write_modules(folder: Path, kinds: list[str]) -> None:
    write(
        folder / "modules.json",
        [{"idx": i, "type": f"sentence_transformers.models.{k}"} for i, k in enumerate(kinds)],
    )


def token_model(path: Path, output: str = "last_hidden_state", kind: str = "INT64") -> None:
    """Write a minimal model: the state of a token is (its id / 1000, 1)."""
    onnx = pytest.importorskip("onnx")
    number, integer = onnx.TensorProto.FLOAT, getattr(onnx.TensorProto, kind)
    helper = onnx.helper
    inputs = [
        helper.make_tensor_value_info(name, integer, ["batch", "tokens"])
        for name in ("input_ids", "attention_mask", "token_type_ids")
    ]
    constants = [
        helper.make_tensor("thousand", number, [], [1000.0]),
        helper.make_tensor("last", onnx.TensorProto.INT64, [1], [-1]),
    ]
    nodes = [
        helper.make_node("Cast", ["input_ids"], ["numbers"], to=number),
        helper.make_node("Div", ["numbers", "thousand"], ["scaled"]),
        helper.make_node("Cast", ["attention_mask"], ["ones"], to=number),
        helper.make_node("Unsqueeze", ["scaled", "last"], ["left"]),
        helper.make_node("Unsqueeze", ["ones", "last"], ["right"]),
        helper.make_node("Concat", ["left", "right"], [output], axis=-1),
    ]
    outputs = [helper.make_tensor_value_info(output, number, ["batch", "tokens", 2])]
    graph = helper.make_graph(nodes, "tokens", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, str(path))


def direction(*state: float) -> Any:
    return np.array(state) / np.linalg.norm(state)


@pytest.mark.parametrize("name", ["model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx"])
def test_plain_onnx_folder(tmp_path: Path, minilm: OnnxEmbedder, name: str) -> None:
    embedder = loaded(copy_model(tmp_path / "mini", name))
    np.testing.assert_array_equal(embedder.embed_query("cats"), minilm.embed_query("cats"))
    assert embedder.identity.startswith("mini/")
    assert (embedder.dimension, embedder.window, embedder.local) == (384, 510, True)


def test_bundled_layout(tmp_path: Path, minilm: OnnxEmbedder) -> None:
    shutil.copytree(MINILM, tmp_path / "copy")
    embedder = loaded(tmp_path / "copy")
    assert embedder.identity == minilm.identity
    assert embedder.window == minilm.window


def test_sentence_transformers_layout(tmp_path: Path, minilm: OnnxEmbedder) -> None:
    copy_model(tmp_path, "onnx/model.onnx")
    write_modules(tmp_path, SIMPLE)
    write(
        tmp_path / "1_Pooling" / "config.json",
        {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False},
    )
    write(tmp_path / "sentence_bert_config.json", {"max_seq_length": 128})
    write(
        tmp_path / "config_sentence_transformers.json",
        {"prompts": {"query": "query: ", "document": "passage: "}},
    )
    embedder = loaded(tmp_path)
    assert embedder.window == 126 - len(["passage", ":"])
    np.testing.assert_array_equal(embedder.embed_query("cats"), minilm.embed_query("query: cats"))
    np.testing.assert_array_equal(
        embedder.embed_documents(["cats"])[0], minilm.embed_query("passage: cats")
    )
    assert getattr(embedder, "queries_as_documents", None) is False


def test_default_prompt_applies_to_queries_and_documents(
    tmp_path: Path, minilm: OnnxEmbedder
) -> None:
    prompts = {"prompts": {"search": "find: "}, "default_prompt_name": "search"}
    write(copy_model(tmp_path) / "config_sentence_transformers.json", prompts)
    embedder = loaded(tmp_path)
    np.testing.assert_array_equal(embedder.embed_query("cats"), minilm.embed_query("find: cats"))
    np.testing.assert_array_equal(
        embedder.embed_documents(["cats"])[0], minilm.embed_query("find: cats")
    )
    assert getattr(embedder, "queries_as_documents", None) is True


@pytest.mark.parametrize(
    ("files", "window"),
    [
        (
            {
                "sentence_bert_config.json": {"max_seq_length": 64},
                "config.json": {"max_position_embeddings": 512},
            },
            62,
        ),
        ({"tokenizer_config.json": {"model_max_length": 256}}, 254),
        (
            {
                "tokenizer_config.json": {"model_max_length": 1e30},
                "config.json": {"max_position_embeddings": 100},
            },
            98,
        ),
        ({"sentence_bert_config.json": {"max_seq_length": None}}, 510),
    ],
)
def test_window_comes_from_configuration(
    tmp_path: Path, files: dict[str, Any], window: int
) -> None:
    for name, content in files.items():
        write(tmp_path / name, content)
    assert loaded(copy_model(tmp_path)).window == window


@pytest.mark.parametrize(
    ("mode", "state"),
    [
        ("pooling_mode_mean_tokens", CATS.mean()),
        ("pooling_mode_cls_token", CATS[0]),
        ("pooling_mode_max_tokens", CATS.max()),
        ("pooling_mode_lasttoken", CATS[-1]),
        (None, CATS.mean()),
    ],
)
def test_token_states_are_pooled(tmp_path: Path, mode: str | None, state: float) -> None:
    token_model(copy_model(tmp_path) / "model.onnx")
    if mode:
        write(tmp_path / "1_Pooling" / "config.json", {mode: True, "word_embedding_dimension": 2})
    embedder = loaded(tmp_path)
    assert embedder.dimension == 2
    np.testing.assert_allclose(embedder.embed_query("cats"), direction(state / 1000, 1), atol=1e-6)


def test_int32_inputs_are_supported(tmp_path: Path) -> None:
    token_model(copy_model(tmp_path) / "model.onnx", output="token_embeddings", kind="INT32")
    np.testing.assert_allclose(
        loaded(tmp_path).embed_query("cats"), direction(CATS.mean() / 1000, 1), atol=1e-6
    )


def test_two_pooling_modes_are_rejected(tmp_path: Path) -> None:
    both = {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": True}
    write(copy_model(tmp_path) / "1_Pooling" / "config.json", both)
    with pytest.raises(EmbedderError, match="exactly one of"):
        loaded(tmp_path)


@pytest.mark.parametrize("file", ["config.json", "model.onnx", "1_Pooling/config.json"])
def test_identity_follows_file_contents(tmp_path: Path, file: str) -> None:
    write(copy_model(tmp_path) / "config.json", {})
    write(tmp_path / "1_Pooling" / "config.json", {})
    before = loaded(tmp_path).identity
    assert loaded(tmp_path).identity == before
    with (tmp_path / file).open("ab") as end:
        end.write(b"\n")
    assert loaded(tmp_path).identity != before


def without_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)


def test_unsupported_weights_name_required_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_library(monkeypatch)
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    with pytest.raises(EmbedderError, match=r"pip install 'sentence-transformers"):
        loaded(tmp_path)


def test_unsupported_modules_name_required_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_library(monkeypatch)
    write_modules(copy_model(tmp_path), [*SIMPLE, "Dense"])
    with pytest.raises(EmbedderError, match=r"pip install 'sentence-transformers"):
        loaded(tmp_path)


def test_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match=r"the folder .*absent does not exist"):
        loaded(tmp_path / "absent")


def test_empty_folder_error_names_expected_files(tmp_path: Path) -> None:
    with pytest.raises(EmbedderError, match=r"expected model\.onnx"):
        loaded(tmp_path)


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json"])
def test_broken_file_is_named_at_first_use(tmp_path: Path, file: str) -> None:
    (copy_model(tmp_path) / file).write_bytes(b"not what it should be")
    embedder = loaded(tmp_path)
    with pytest.raises(EmbedderError, match=file):
        embedder.embed_query("cats")


def test_broken_configuration_is_named(tmp_path: Path) -> None:
    (copy_model(tmp_path) / "config.json").write_text("{")
    with pytest.raises(EmbedderError, match=r"config\.json"):
        loaded(tmp_path)


def test_broken_description_is_named(tmp_path: Path) -> None:
    write(copy_model(tmp_path) / "model.json", {"name": "half"})
    with pytest.raises(EmbedderError, match=r"model\.json.*sha256"):
        loaded(tmp_path)
