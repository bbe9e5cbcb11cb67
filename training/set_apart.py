"""Keep outlier channels out of int8 products, where they would use up the quantization steps.

Dynamic quantization has one scale per product input. In some encoders a few channels are far larger
than the rest (granite: 230, next 6), which leaves the others a few of 256 steps. Such a channel is
multiplied in float and added; its int8 input is set to zero.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import helper, numpy_helper
from tokenizers import Tokenizer
from transformers import BertModel

from make_model import sample_texts

# An outlier exceeds the channel of this rank by this factor, over sample texts.
TIMES, PLACE = 5.0, 5

Places = dict[tuple[str, int], list[int]]


def large_channels(encoder: BertModel, tokenizer: Path) -> Places:
    """Return outlier inputs of both feed-forward products, by product name and layer."""
    largest: dict[tuple[str, int], torch.Tensor] = {}
    handles = []
    for number, layer in enumerate(encoder.encoder.layer):
        for name, product in (("widen", layer.intermediate.dense), ("narrow", layer.output.dense)):

            def look(
                _: object, inputs: tuple[torch.Tensor], key: tuple[str, int] = (name, number)
            ) -> None:
                own = inputs[0].abs().amax((0, 1))
                largest[key] = torch.maximum(largest.get(key, own), own)

            handles.append(product.register_forward_pre_hook(look))
    with torch.no_grad():
        for encoding in Tokenizer.from_file(str(tokenizer)).encode_batch(sample_texts()):
            encoder(input_ids=torch.tensor([encoding.ids]))
    for handle in handles:
        handle.remove()
    found = {
        key: torch.nonzero(own > TIMES * own.topk(PLACE).values[-1])[:, 0].tolist()
        for key, own in largest.items()
    }
    return {key: channels for key, channels in found.items() if channels}


def set_apart(source: Path, target: Path, places: Places, width: int) -> None:
    """Rewrite a fused graph before quantization.

    Products are identified by their non-square shapes.
    """
    model = onnx.load(source)
    graph = model.graph
    weights = {one.name: one for one in graph.initializer}
    seen = {"widen": 0, "narrow": 0}
    nodes = []
    for node in graph.node:
        nodes.append(node)
        if node.op_type != "MatMul" or node.input[1] not in weights:
            continue
        own = numpy_helper.to_array(weights[node.input[1]])
        if own.shape[0] == own.shape[1]:
            continue
        name = "widen" if own.shape[0] == width else "narrow"
        channels = places.get((name, seen[name]), [])
        if channels:
            nodes[-1:] = _apart(graph, node, own, channels, f"{name}.{seen[name]}")
        seen[name] += 1
    del graph.node[:]
    graph.node.extend(nodes)
    onnx.save(model, target)


def _apart(
    graph: onnx.GraphProto,
    product: onnx.NodeProto,
    weights: np.ndarray,
    channels: list[int],
    name: str,
) -> list[onnx.NodeProto]:
    inputs, output = product.input[0], product.output[0]
    rest = np.ones(weights.shape[0], dtype=np.float32)
    rest[channels] = 0
    _constant(graph, f"{name}.rest", rest)
    _constant(graph, f"{name}.axes", np.array([-1]))
    product.input[0], product.output[0] = f"{name}.inputs", f"{name}.sum.0"
    nodes = [helper.make_node("Mul", [inputs, f"{name}.rest"], [f"{name}.inputs"]), product]
    for number, channel in enumerate(channels):
        own = f"{name}.{channel}"
        _constant(graph, f"{own}.start", np.array([channel]))
        _constant(graph, f"{own}.end", np.array([channel + 1]))
        _constant(graph, f"{own}.weights", weights[channel].astype(np.float32))
        last = output if number == len(channels) - 1 else f"{name}.sum.{number + 1}"
        nodes += [
            helper.make_node(
                "Slice", [inputs, f"{own}.start", f"{own}.end", f"{name}.axes"], [f"{own}.input"]
            ),
            helper.make_node("Mul", [f"{own}.input", f"{own}.weights"], [f"{own}.part"]),
            helper.make_node("Add", [f"{name}.sum.{number}", f"{own}.part"], [last]),
        ]
    return nodes


def _constant(graph: onnx.GraphProto, name: str, value: np.ndarray) -> None:
    graph.initializer.append(numpy_helper.from_array(value, name))
