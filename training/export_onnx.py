r"""Export trained weights like the bundled model: fused, 7 bits per channel, with pooling and head.

PYTHONPATH=scripts python export_onnx.py embedder student.npz FOLDER \
    --tokenizer granite.tokenizer.json
PYTHONPATH=scripts python export_onnx.py reranker reranker-12.npz FOLDER
PYTHONPATH=scripts python export_onnx.py reranker reranker-3.npz FOLDER --relu

Needs the environment of scripts/make_model.py, whose steps it uses. A reranker's additions and
layer norms stay separate: fused they take three times as long on long batches. Loaders must disable
that fusion in onnxruntime (`disabled_optimizers=["SkipLayerNormFusion"]`).
"""

from __future__ import annotations

import argparse
import json
import tempfile
from pathlib import Path
from typing import Any

import torch
from onnxruntime.transformers.fusion_options import FusionOptions
from onnxruntime.transformers.optimizer import optimize_model
from transformers import BertConfig, BertModel

from data import PREFIXES
from encoder import State, load_reranker, shape_of, to_transformers
from make_model import (
    DIMENSION,
    HEADS,
    MAX_TOKENS,
    OPSET,
    Pooled,
    fuse,
    quantise,
    sha256,
    verified_source,
    write_tokenizer,
)
from set_apart import large_channels, set_apart

MAX_PAIR_TOKENS = 320


class First(Pooled):
    """For an encoder whose first state represents the text."""

    def forward(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        segments = torch.zeros_like(input_ids)
        states = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=segments
        )[0]
        return torch.nn.functional.normalize(states[:, 0], p=2, dim=1)


class Scored(torch.nn.Module):
    """Encoder over a pair, mean pooling and the head: one score per pair, higher is better."""

    def __init__(self, encoder: torch.nn.Module, state: State) -> None:
        super().__init__()
        self.encoder = encoder
        self.hidden, self.score = (
            torch.nn.Linear(DIMENSION, DIMENSION),
            torch.nn.Linear(DIMENSION, 1),
        )
        own = {
            name: value for name, value in state.items() if name.startswith(("hidden.", "score."))
        }
        self.load_state_dict(own, strict=False)

    def forward(
        self, input_ids: torch.Tensor, attention_mask: torch.Tensor, token_type_ids: torch.Tensor
    ) -> torch.Tensor:
        states = self.encoder(
            input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
        )[0]
        mask = attention_mask.unsqueeze(-1).to(states.dtype)
        mean = (states * mask).sum(1) / mask.sum(1).clamp(min=1e-9)
        return self.score(torch.tanh(self.hidden(mean))).squeeze(-1)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=("embedder", "reranker"))
    parser.add_argument("weights", type=Path)
    parser.add_argument("target", type=Path)
    parser.add_argument(
        "--words", type=Path, help="embedder with the word table that the reranker file lacks"
    )
    parser.add_argument("--tokenizer", type=Path, help="the base's, if it is not BERT's")
    parser.add_argument(
        "--prefixed", action="store_true", help="the embedder was trained with E5's prefixes"
    )
    parser.add_argument(
        "--relu", action="store_true", help="the feed-forward parts were trained with ReLU"
    )
    arguments = parser.parse_args()
    kind, target = arguments.kind, arguments.target
    target.mkdir(parents=True, exist_ok=True)
    write_tokenizer(
        arguments.tokenizer or verified_source() / "tokenizer.json", target / "tokenizer.json"
    )
    with tempfile.TemporaryDirectory() as scratch:
        exported, fused = Path(scratch) / "exported.onnx", Path(scratch) / "fused.onnx"
        state = load_reranker(arguments.weights, arguments.words)
        encoder = export(kind, state, exported, "relu" if arguments.relu else "gelu")
        (fuse if kind == "embedder" else fuse_apart)(exported, fused)
        places = large_channels(encoder, target / "tokenizer.json")
        print("channels set apart:", {".".join(map(str, key)): own for key, own in places.items()})
        set_apart(fused, fused, places, DIMENSION)
        quantise(fused, target / "model.onnx")
    describe(kind, arguments.weights, target, arguments.prefixed)
    print(kind, arguments.weights.name, (target / "model.onnx").stat().st_size)


def fuse_apart(source: Path, target: Path) -> None:
    """Fuse, except additions with layer norms."""
    options = FusionOptions("bert")
    options.enable_embed_layer_norm = False
    options.enable_skip_layer_norm = options.enable_bias_skip_layer_norm = False
    model = optimize_model(
        str(source),
        model_type="bert",
        num_heads=HEADS,
        hidden_size=DIMENSION,
        opt_level=0,
        optimization_options=options,
    )
    model.save_model_to_file(str(target))


def export(kind: str, state: State, target: Path, activation: str) -> BertModel:
    encoder_state = {
        name.removeprefix("encoder."): value
        for name, value in state.items()
        if not name.startswith(("hidden.", "score."))
    }
    shape = shape_of(encoder_state)
    # BERT counts positions from 0: those before a text's first are dropped.
    encoder_state["positions.weight"] = encoder_state["positions.weight"][shape.offset :]
    theirs = to_transformers(encoder_state)
    config = BertConfig(
        vocab_size=shape.vocabulary, hidden_size=DIMENSION, num_hidden_layers=shape.layers, num_attention_heads=HEADS,
        intermediate_size=shape.inner, hidden_act=activation, attn_implementation="eager",
    )  # fmt: skip
    encoder = BertModel(config, add_pooling_layer=False)
    missing, unexpected = encoder.load_state_dict(theirs, strict=False)
    assert not unexpected, unexpected
    assert all("position_ids" in name for name in missing), missing
    sample = torch.tensor([[101, 7592, 102, 2088, 102], [101, 2204, 102, 2851, 102]])
    names = ["input_ids", "attention_mask"] + (["token_type_ids"] if kind == "reranker" else [])
    inputs = (sample, torch.ones_like(sample), torch.tensor([[0, 0, 0, 1, 1]] * 2))[: len(names)]
    model = (
        Scored(encoder, state)
        if kind == "reranker"
        else (First if shape.first else Pooled)(encoder)
    )
    output = "score" if kind == "reranker" else "embedding"
    torch.onnx.export(
        model.eval(),
        inputs,
        str(target),
        input_names=names,
        output_names=[output],
        dynamic_axes={**{name: {0: "batch", 1: "tokens"} for name in names}, output: {0: "batch"}},
        opset_version=OPSET,
        dynamo=False,
    )
    return encoder


def describe(kind: str, weights: Path, target: Path, prefixed: bool) -> None:
    description: dict[str, Any] = {
        "name": f"trivet-{weights.stem}",
        "kind": kind,
        "dimension": DIMENSION if kind == "embedder" else None,
        "max_tokens": MAX_TOKENS if kind == "embedder" else MAX_PAIR_TOKENS,
        "sha256": {name: sha256(target / name) for name in ("model.onnx", "tokenizer.json")},
        "source": {weights.name: sha256(weights)},
        "made_by": "export_onnx.py",
    }
    if prefixed:
        description["document_prompt"], description["query_prompt"] = PREFIXES
    (target / "model.json").write_text(json.dumps(description, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
