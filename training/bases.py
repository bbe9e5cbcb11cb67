"""Read a twelve-layer encoder from its ONNX file into weights that can be trained on, small enough to travel.

    python training/bases.py e5-small.onnx e5.npz        # eight bits a weight, one scale a row
    python training/bases.py --unpack e5.npz e5-half.npz # back, as the other scripts want it

Products have no names of their own in such files; the bias that is added behind each of them has one.
"""

from __future__ import annotations

import sys
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


def main() -> None:
    if sys.argv[1] == "--unpack":
        unpacked(Path(sys.argv[2]), Path(sys.argv[3]))
        return
    state = read(Path(sys.argv[1]))
    packed: dict[str, Any] = {}
    for name, value in state.items():
        if value.ndim == 1:
            packed[name] = value.astype(np.float16)
            continue
        scale = np.abs(value).max(axis=1, keepdims=True) / 127 + 1e-12
        packed[name], packed[f"{name}.scale"] = np.round(value / scale).astype(np.int8), scale.astype(np.float32)
    np.savez(Path(sys.argv[2]), **packed)


def unpacked(source: Path, target: Path) -> None:
    with np.load(source) as arrays:
        whole = {
            name: arrays[name] * arrays[f"{name}.scale"] if f"{name}.scale" in arrays.files else arrays[name]
            for name in arrays.files
            if not name.endswith(".scale")
        }
    np.savez(target, **{name: value.astype(np.float16) for name, value in whole.items()})


def read(path: Path) -> dict[str, np.ndarray]:
    import onnx
    from onnx import numpy_helper

    graph = onnx.load(path).graph
    arrays = {
        one.name: numpy_helper.to_array(one).astype(np.float32) for one in graph.initializer if one.data_type == 1
    }
    state = {f"encoder.{ours}": arrays[f"embeddings.{theirs}"] for theirs, ours in EMBEDDINGS.items()}
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
            (ours for theirs, ours in NAMES.items() if f".{theirs}.bias" in bias.replace(f"layer.{number}", "")),
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
