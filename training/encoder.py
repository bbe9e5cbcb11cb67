"""BERT-like encoders in PyTorch: fused query-key-value products, bf16, chunks of similar length.

Weights convert to and from the names of `transformers.BertModel`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bases import whole

WIDTH, HEADS, INNER, VOCABULARY, POSITIONS = 384, 12, 1536, 30522, 512
NORM_EPSILON = 1e-12
CLS, SEP = 101, 102
# Sequences are sorted by length and run in chunks of about this many tokens, to limit padding.
TOKENS_A_CHUNK = 65_536

State = dict[str, Tensor]
Model = TypeVar("Model", bound=nn.Module)


@dataclass(frozen=True, slots=True)
class Shape:
    """Differences from the stock model: depth, feed-forward width, activation, vocabulary.

    `offset` is a text's first position number. With `first`, the first token's state represents the
    text instead of the mean.
    """

    layers: int = 6
    inner: int = INNER
    relu: bool = False
    vocabulary: int = VOCABULARY
    positions: int = POSITIONS
    offset: int = 0
    first: bool = False


STOCK_SHAPE = Shape()


class Layer(nn.Module):
    """`rounded` computes products like the int8 file, so training can compensate the loss."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.rounded = False
        self.activation = functional.relu if shape.relu else functional.gelu
        self.attend = nn.Linear(WIDTH, 3 * WIDTH)
        self.attended = nn.Linear(WIDTH, WIDTH)
        self.attended_norm = nn.LayerNorm(WIDTH, eps=NORM_EPSILON)
        self.widen = nn.Linear(WIDTH, shape.inner)
        self.narrow = nn.Linear(shape.inner, WIDTH)
        self.narrow_norm = nn.LayerNorm(WIDTH, eps=NORM_EPSILON)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        texts, tokens, _ = states.shape
        heads = (
            self._product(self.attend, states)
            .view(texts, tokens, 3, HEADS, WIDTH // HEADS)
            .permute(2, 0, 3, 1, 4)
        )
        found = functional.scaled_dot_product_attention(
            heads[0], heads[1], heads[2], attn_mask=mask
        )
        found = found.transpose(1, 2).reshape(texts, tokens, WIDTH)
        states = self.attended_norm(states + self._product(self.attended, found))
        inside = self.activation(self._product(self.widen, states))
        return self.narrow_norm(states + self._product(self.narrow, inside))

    def _product(self, linear: nn.Linear, inputs: Tensor) -> Tensor:
        if not self.rounded:
            return linear(inputs)
        return functional.linear(
            _rounded_inputs(inputs), _rounded_weights(linear.weight), linear.bias
        )


def _rounded_inputs(inputs: Tensor) -> Tensor:
    """Round each text to eight bits over its range; the gradient passes unchanged."""
    own = inputs.detach().float()
    low, high = (
        own.amin((1, 2), keepdim=True).clamp(max=0),
        own.amax((1, 2), keepdim=True).clamp(min=0),
    )
    scale = (high - low) / 255 + 1e-9
    # Zero must stay zero: most activations are near it, and a shift would add up.
    zero = (-low / scale).round()
    steps = (((own / scale).round() + zero).clamp(0, 255) - zero) * scale
    return inputs + (steps - own).to(inputs.dtype)


def _rounded_weights(weights: Tensor) -> Tensor:
    own = weights.detach().float()
    scale = own.abs().amax(1, keepdim=True) / 64 + 1e-9
    return weights + ((own / scale).round() * scale - own).to(weights.dtype)


class Encoder(nn.Module):
    def __init__(self, shape: Shape = STOCK_SHAPE) -> None:
        super().__init__()
        self.shape = shape
        self.words = nn.Embedding(shape.vocabulary, WIDTH)
        self.positions = nn.Embedding(shape.positions, WIDTH)
        self.segments = nn.Embedding(2, WIDTH)
        self.norm = nn.LayerNorm(WIDTH, eps=NORM_EPSILON)
        self.layers = nn.ModuleList(Layer(shape) for _ in range(shape.layers))

    def forward(self, ids: Tensor, mask: Tensor, segments: Tensor) -> Tensor:
        """Return the mean of last states over real tokens, or the first state, in float32."""
        places = torch.arange(ids.shape[1], device=ids.device) + self.shape.offset
        # Two rows only: a product's gradient is a plain sum; a lookup's would queue at two
        # addresses.
        first, second = self.segments.weight
        kinds = first + segments.unsqueeze(-1).to(first.dtype) * (second - first)
        states = self.norm(self.words(ids) + self.positions(places) + kinds)
        attention_mask = mask[:, None, None, :]
        for layer in self.layers:
            states = layer(states, attention_mask)
        if self.shape.first:
            return states[:, 0].float()
        weights = mask.unsqueeze(-1).to(states.dtype)
        return (states * weights).sum(1, dtype=torch.float32) / mask.sum(1, keepdim=True)


class Reranker(nn.Module):
    """Encoder over question and passage together, mean pooling and a small head."""

    def __init__(self, shape: Shape = STOCK_SHAPE) -> None:
        super().__init__()
        self.encoder = Encoder(shape)
        self.hidden = nn.Linear(WIDTH, WIDTH)
        self.score = nn.Linear(WIDTH, 1)

    def forward(self, ids: Tensor, mask: Tensor, segments: Tensor) -> Tensor:
        return self.score(torch.tanh(self.hidden(self.encoder(ids, mask, segments))))[:, 0]


class Texts:
    """Token ids of many texts in a flat tensor without special tokens, batched on the device."""

    def __init__(
        self,
        ids: np.ndarray,
        starts: np.ndarray,
        lengths: np.ndarray,
        device: str,
        special: tuple[int, int] = (CLS, SEP),
    ) -> None:
        self.device, self.special = device, special
        self.prefixed = False
        self.vocabulary = int(ids.max()) + 1 if len(ids) else 0
        self.lengths, self.host_ids, self.host_starts = lengths, ids, starts
        self._ids = torch.as_tensor(ids, dtype=torch.int32, device=device)
        self._starts = torch.as_tensor(starts, dtype=torch.int64, device=device)
        self._lengths = torch.as_tensor(lengths, dtype=torch.int64, device=device)

    def know_prefixes(self, prefixes: Sequence[Sequence[int]], asked: np.ndarray) -> None:
        """Set prefixes of passages and queries; `prefixed` says whether to use them."""
        self._prefixes = torch.as_tensor(prefixes, dtype=torch.int64, device=self.device)
        self._asked = torch.as_tensor(asked, dtype=torch.int64, device=self.device)

    def singles(self, which: Tensor, longest: int) -> tuple[Tensor, Tensor, Tensor]:
        """[CLS] text [SEP]; the host knows `longest`, so nothing waits for the device."""
        before = self._prefixes.shape[1] if self.prefixed else 0
        own = self._lengths[which][:, None]
        places = torch.arange(_rounded(longest + 2 + before), device=self.device)[None, :]
        ids = self._at(which, (places - 1 - before).clamp(min=0), own)
        first, last = self.special
        ids = torch.where(places == 0, first, torch.where(places == own + before + 1, last, ids))
        if before:
            ids[:, 1 : 1 + before] = self._prefixes[self._asked[which]]
        mask = places < own + before + 2
        return ids * mask, mask, torch.zeros_like(ids)

    def pairs(self, first: Tensor, second: Tensor, longest: int) -> tuple[Tensor, Tensor, Tensor]:
        """[CLS] first [SEP] second [SEP], the second in segment 1; `longest` counts both."""
        one, two = self._lengths[first][:, None], self._lengths[second][:, None]
        places = torch.arange(_rounded(longest + 3), device=self.device)[None, :]
        inside = self._at(first, (places - 1).clamp(min=0), one)
        beyond = self._at(second, (places - one - 2).clamp(min=0), two)
        ids = torch.where(places <= one, inside, beyond)
        start, end = self.special
        ids = torch.where(places == 0, start, ids)
        ids = torch.where((places == one + 1) | (places == one + two + 2), end, ids)
        mask = places < one + two + 3
        return ids * mask, mask, ((places > one + 1) & mask).long()

    def _at(self, which: Tensor, places: Tensor, lengths: Tensor) -> Tensor:
        inside = torch.minimum(places, (lengths - 1).clamp(min=0))
        return self._ids[self._starts[which][:, None] + inside].long()


def embedded(encoder: Encoder, texts: Texts, which: np.ndarray) -> Tensor:
    lengths = texts.lengths[which]
    order = np.argsort(-lengths, kind="stable")
    chosen = torch.as_tensor(which[order], device=texts.device)
    outputs = [
        encoder(*texts.singles(chosen[part], int(lengths[order[part.start]])))
        for part in _parts(lengths[order] + 2)
    ]
    return functional.normalize(_in_place(torch.cat(outputs), order), dim=1)


def scored(reranker: Reranker, texts: Texts, queries: np.ndarray, passages: np.ndarray) -> Tensor:
    lengths = texts.lengths[queries] + texts.lengths[passages]
    order = np.argsort(-lengths, kind="stable")
    first, second = (
        torch.as_tensor(which[order], device=texts.device) for which in (queries, passages)
    )
    outputs = [
        reranker(*texts.pairs(first[part], second[part], int(lengths[order[part.start]])))
        for part in _parts(lengths[order] + 3)
    ]
    return _in_place(torch.cat(outputs), order)


def _rounded(length: int) -> int:
    """Round up to a multiple of 16: attention needs aligned rows, and fewer shapes are better."""
    return -(-length // 16) * 16


def _parts(lengths: np.ndarray) -> Iterator[slice]:
    start = 0
    while start < len(lengths):
        count = max(1, TOKENS_A_CHUNK // int(lengths[start]))
        yield slice(start, min(start + count, len(lengths)))
        start += count


def _in_place(values: Tensor, order: np.ndarray) -> Tensor:
    back = np.empty(len(order), dtype=np.int64)
    back[order] = np.arange(len(order))
    return values[torch.as_tensor(back, device=values.device)]


def from_transformers(source: Mapping[str, Tensor]) -> State:
    state = {
        "words.weight": source["embeddings.word_embeddings.weight"],
        "positions.weight": source["embeddings.position_embeddings.weight"],
        "segments.weight": source["embeddings.token_type_embeddings.weight"],
        "norm.weight": source["embeddings.LayerNorm.weight"],
        "norm.bias": source["embeddings.LayerNorm.bias"],
    }
    layers = 1 + max(
        int(name.split(".")[2]) for name in source if name.startswith("encoder.layer.")
    )
    for number in range(layers):
        theirs, ours = f"encoder.layer.{number}", f"layers.{number}"
        for part in ("weight", "bias"):
            own = [
                source[f"{theirs}.attention.self.{name}.{part}"]
                for name in ("query", "key", "value")
            ]
            state[f"{ours}.attend.{part}"] = torch.cat(own)
            for mine, name in _NAMES.items():
                state[f"{ours}.{mine}.{part}"] = source[f"{theirs}.{name}.{part}"]
    return state


def to_transformers(state: Mapping[str, Tensor]) -> State:
    target = {
        "embeddings.word_embeddings.weight": state["words.weight"],
        "embeddings.position_embeddings.weight": state["positions.weight"],
        "embeddings.token_type_embeddings.weight": state["segments.weight"],
        "embeddings.LayerNorm.weight": state["norm.weight"],
        "embeddings.LayerNorm.bias": state["norm.bias"],
    }
    layers = 1 + max(int(name.split(".")[1]) for name in state if name.startswith("layers."))
    for number in range(layers):
        theirs, ours = f"encoder.layer.{number}", f"layers.{number}"
        for part in ("weight", "bias"):
            for name, own in zip(
                ("query", "key", "value"), state[f"{ours}.attend.{part}"].chunk(3), strict=True
            ):
                target[f"{theirs}.attention.self.{name}.{part}"] = own.contiguous()
            for mine, name in _NAMES.items():
                target[f"{theirs}.{name}.{part}"] = state[f"{ours}.{mine}.{part}"]
    return target


_NAMES = {
    "attended": "attention.output.dense",
    "attended_norm": "attention.output.LayerNorm",
    "widen": "intermediate.dense",
    "narrow": "output.dense",
    "narrow_norm": "output.LayerNorm",
}


def shape_of(state: Mapping[str, Tensor], relu: bool = False) -> Shape:
    own = {name.removeprefix("encoder."): value for name, value in state.items()}
    vocabulary, positions = len(own["words.weight"]), len(own["positions.weight"])
    # RoBERTa-like models count positions from 2; the one used here takes the first state.
    extra = positions - POSITIONS
    return Shape(
        layers=1 + max(int(name.split(".")[1]) for name in own if name.startswith("layers.")),
        inner=len(own["layers.0.widen.bias"]),
        relu=relu,
        vocabulary=vocabulary,
        positions=positions,
        offset=extra,
        first=extra > 0,
    )


def averaged(states: Sequence[State], weights: Sequence[float]) -> State:
    return {
        name: sum(
            (weight * state[name].float() for state, weight in zip(states, weights, strict=True)),
            torch.tensor(0.0),
        )
        for name in states[0]
    }


@torch.no_grad()
def neuron_worth(encoder: Encoder, run: Callable[[], object]) -> list[Tensor]:
    """Measure each feed-forward neuron's contribution to the states while the encoder runs."""
    sums: list[Tensor] = []
    handles = []
    for layer in encoder.layers:
        narrow: nn.Linear = layer.narrow
        total = torch.zeros(narrow.in_features, device=narrow.weight.device)

        def add(_: nn.Module, inputs: tuple[Tensor], total: Tensor = total) -> None:
            total += inputs[0].float().abs().sum((0, 1))

        handles.append(narrow.register_forward_pre_hook(add))
        sums.append(total)
    run()
    for handle in handles:
        handle.remove()
    norms = [layer.narrow.weight.float().norm(dim=0) for layer in encoder.layers]
    return [(total * norm).cpu() for total, norm in zip(sums, norms, strict=True)]


def smaller(state: State, kept: Sequence[int], worth: Sequence[Tensor], inner: int) -> State:
    """Return a smaller reranker's start: renumbered layers with their most useful neurons."""
    chosen = {}
    for name, value in state.items():
        if ".layers." not in name:
            chosen[name] = value
            continue
        head, _, rest = name.partition(".layers.")
        number, _, tail = rest.partition(".")
        if int(number) not in kept:
            continue
        if inner < INNER and tail.startswith(("widen.", "narrow.weight")):
            best = worth[int(number)].topk(inner).indices.sort().values
            value = value[:, best] if tail.startswith("narrow.") else value[best]
        chosen[f"{head}.layers.{list(kept).index(int(number))}.{tail}"] = value
    return chosen


def ready(
    model: Model, state: State, device: str, training: bool = False, compiled: bool = False
) -> Model:
    """Load weights: bf16 to train, fp16 to judge, float32 on a CPU and in heads."""
    model.load_state_dict({name: value.float() for name, value in state.items()})
    encoder = model.encoder if isinstance(model, Reranker) else model
    model.to(device)
    if device == "cuda":
        encoder.to(torch.bfloat16 if training else torch.float16)
    if compiled and isinstance(encoder, Encoder):
        for layer in encoder.layers:
            layer.compile(dynamic=True)
    return model.train(training)


def save_half(state: Mapping[str, Tensor], path: Path) -> None:
    np.savez(
        path,
        **{name: value.detach().cpu().to(torch.float16).numpy() for name, value in state.items()},
    )


def load_half(path: Path) -> State:
    """Return half-precision weights, from plain files or bases.py's packs."""
    return {name: torch.from_numpy(value) for name, value in whole(path).items()}


def load_reranker(path: Path, words: Path | None = None) -> State:
    """Return a reranker's weights; `words` names the embedder whose word table it shares."""
    state = load_half(path)
    if words is not None:
        state["encoder.words.weight"] = encoder_alone(load_half(words))["words.weight"]
    return state


def encoder_alone(state: Mapping[str, Tensor]) -> State:
    """Return an encoder's weights under its own names, even from a reranker's file."""
    return {
        name.removeprefix("encoder."): value
        for name, value in state.items()
        if not name.startswith(("hidden.", "score."))
    }
