"""A tiny cross-encoder that counts the query's words in the text, plus one favored word."""

from __future__ import annotations

import functools
import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

from support.second_model import MINILM

INPUTS = ("input_ids", "attention_mask", "token_type_ids")
# Score of the favored word in a text; each word of the query scores one.
LOVE = 100.0
FIRST_WORD_NUMBER = 1000  # the vocabulary's special tokens come before


def write_reranker(
    folder: Path, loved: str = "emerald", max_tokens: int = 320, answers: int = 1
) -> Path:
    """Write a folder in the format of Trivet's own rerankers."""
    folder.mkdir(parents=True, exist_ok=True)
    shutil.copy(MINILM / "tokenizer.json", folder)
    _write_model(folder / "model.onnx", _number_of(loved), answers)
    sums = {
        name: hashlib.sha256((folder / name).read_bytes()).hexdigest()
        for name in ("model.onnx", "tokenizer.json")
    }
    description = {
        "name": "tiny-reranker",
        "kind": "reranker",
        "max_tokens": max_tokens,
        "sha256": sums,
    }
    (folder / "model.json").write_text(json.dumps(description))
    return folder


@functools.cache
def _number_of(word: str) -> int:
    number = Tokenizer.from_file(str(MINILM / "tokenizer.json")).token_to_id(word)
    assert number is not None
    return int(number)


def _write_model(path: Path, loved: int, answers: int) -> None:
    onnx = pytest.importorskip("onnx")
    helper, number, integer = onnx.helper, onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    inputs = [helper.make_tensor_value_info(name, integer, ["batch", "tokens"]) for name in INPUTS]
    constants = [
        helper.make_tensor("one", integer, [], [1]),
        helper.make_tensor("words", integer, [], [FIRST_WORD_NUMBER]),
        helper.make_tensor("loved", integer, [], [loved]),
        helper.make_tensor("love", number, [], [LOVE]),
        helper.make_tensor("query_axis", integer, [1], [1]),
        helper.make_tensor("text_axis", integer, [1], [2]),
        helper.make_tensor("tokens_axis", integer, [1], [1]),
        helper.make_tensor("both_axes", integer, [2], [1, 2]),
        helper.make_tensor("shape", integer, [2], [-1, 1]),
        helper.make_tensor("times", integer, [2], [1, answers]),
    ]
    nodes = [
        *_overlap(helper, number),
        helper.make_node("Equal", ["input_ids", "loved"], ["is_loved"]),
        helper.make_node("And", ["is_loved", "in_text"], ["loved_here"]),
        helper.make_node("Cast", ["loved_here"], ["loved_numbers"], to=number),
        helper.make_node(
            "ReduceSum", ["loved_numbers", "tokens_axis"], ["loved_count"], keepdims=0
        ),
        helper.make_node("Mul", ["loved_count", "love"], ["loved_score"]),
        helper.make_node("Add", ["shared", "loved_score"], ["total"]),
        helper.make_node("Reshape", ["total", "shape"], ["column"]),
        helper.make_node("Tile", ["column", "times"], ["score"]),
    ]
    outputs = [helper.make_tensor_value_info("score", number, ["batch", answers])]
    graph = helper.make_graph(nodes, "overlap", inputs, outputs, constants)
    onnx.save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8),
        str(path),
    )


def _overlap(helper: Any, number: int) -> list[Any]:
    """Build the nodes that count common words.

    `in_text` is a word of the text; `shared` counts the pairs of equal query and text words.
    """
    return [
        helper.make_node("Equal", ["token_type_ids", "one"], ["second"]),
        helper.make_node("GreaterOrEqual", ["input_ids", "words"], ["is_word"]),
        helper.make_node("And", ["second", "is_word"], ["in_text"]),
        helper.make_node("Not", ["second"], ["first"]),
        helper.make_node("And", ["first", "is_word"], ["in_query"]),
        helper.make_node("Unsqueeze", ["input_ids", "text_axis"], ["rows"]),
        helper.make_node("Unsqueeze", ["input_ids", "query_axis"], ["columns"]),
        helper.make_node("Equal", ["rows", "columns"], ["same"]),
        helper.make_node("Unsqueeze", ["in_query", "text_axis"], ["query_rows"]),
        helper.make_node("Unsqueeze", ["in_text", "query_axis"], ["text_columns"]),
        helper.make_node("And", ["query_rows", "text_columns"], ["across"]),
        helper.make_node("And", ["same", "across"], ["shared_here"]),
        helper.make_node("Cast", ["shared_here"], ["shared_numbers"], to=number),
        helper.make_node("ReduceSum", ["shared_numbers", "both_axes"], ["shared"], keepdims=0),
    ]
