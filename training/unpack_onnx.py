"""Turn a shipped int8 reranker or embedder back into weights to train on or judge.

python training/unpack_onnx.py src/trivet/models/weights/reranker reranker-12.npz

Needs the environment of scripts/make_model.py. The weights are those the int8 file computes with,
so training continues from the shipped model.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

# The products of a layer, in execution order.
PRODUCTS = ("attended", "widen", "narrow")


def main() -> None:
    folder, target = Path(sys.argv[1]), Path(sys.argv[2])
    if folder.suffix == ".npz":  # Arrays only, for a machine without the onnx library.
        arrays = dict(np.load(folder))
    else:
        import onnx
        from onnx import numpy_helper

        graph = onnx.load(folder / "model.onnx", load_external_data=False).graph
        shared = folder.parent / "words" / "words.npy"  # See scripts/share_words.py.
        arrays = {
            one.name: np.load(shared) if one.external_data else numpy_helper.to_array(one)
            for one in graph.initializer
        }
    state = {name: value.astype(np.float16) for name, value in unpacked(arrays).items()}
    np.savez(target, **state)  # type: ignore[arg-type]
    print(target, len(state), "arrays")


def unpacked(arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Rename BertModel's and the exporter's names to ours (encoder.py)."""
    whole = {
        name.removesuffix("_quantized"): _whole(name, arrays)
        for name in arrays
        if name.endswith("_quantized")
    }
    state = {
        "encoder.words.weight": whole["encoder.embeddings.word_embeddings.weight"],
        "encoder.positions.weight": whole["encoder.embeddings.position_embeddings.weight"],
        "encoder.segments.weight": whole["encoder.embeddings.token_type_embeddings.weight"],
        "encoder.norm.weight": arrays["encoder.embeddings.LayerNorm.weight"],
        "encoder.norm.bias": arrays["encoder.embeddings.LayerNorm.bias"],
    }
    for head in ("hidden", "score") if "hidden.bias" in arrays else ():
        state[f"{head}.weight"], state[f"{head}.bias"] = (
            whole[f"{head}.weight"].T,
            arrays[f"{head}.bias"],
        )
    layers = sum(name.startswith("Attention_") and name.endswith("_qkv_bias") for name in arrays)
    products = sorted(
        (name for name in whole if name.startswith("onnx::MatMul_")),
        key=lambda name: int(name[13:]),
    )
    for number in range(layers):
        theirs, ours = f"encoder.encoder.layer.{number}", f"encoder.layers.{number}"
        state[f"{ours}.attend.weight"] = whole[f"Attention_{number}_qkv_weight"].T
        state[f"{ours}.attend.bias"] = arrays[f"Attention_{number}_qkv_bias"]
        for place, name in enumerate(PRODUCTS):
            state[f"{ours}.{name}.weight"] = whole[products[number * len(PRODUCTS) + place]].T
        for mine, name in _BIASES.items():
            state[f"{ours}.{mine}"] = arrays[f"{theirs}.{name}"]
    return state


_BIASES = {
    "attended.bias": "attention.output.dense.bias",
    "attended_norm.weight": "attention.output.LayerNorm.weight",
    "attended_norm.bias": "attention.output.LayerNorm.bias",
    "widen.bias": "intermediate.dense.bias",
    "narrow.bias": "output.dense.bias",
    "narrow_norm.weight": "output.LayerNorm.weight",
    "narrow_norm.bias": "output.LayerNorm.bias",
}


def _whole(name: str, arrays: dict[str, np.ndarray]) -> np.ndarray:
    stem = name.removesuffix("_quantized")
    quantised, zero = (
        arrays[name].astype(np.float32),
        arrays[f"{stem}_zero_point"].astype(np.float32),
    )
    whole: np.ndarray = (quantised - zero) * arrays[f"{stem}_scale"]
    return whole


if __name__ == "__main__":
    main()
