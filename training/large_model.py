"""A frozen language model of 1.5 billion weights from pack_pairs.py, with trained low-rank updates.

Qwen2.5-Coder-1.5B-Instruct. Needs the files quants.py, constants.py and lazy.py of the library
`gguf`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from gguf.constants import GGMLQuantizationType
from gguf.quants import dequantize
from torch import Tensor, nn
from torch.nn import functional

from packed import DEVICE

WIDTH, HEADS, SHARED_HEADS, HEAD_WIDTH, LAYERS = 1536, 12, 2, 128, 28
EPSILON, ROTATION_BASE, LONGEST = 1e-6, 1e6, 1024
RANK, STRENGTH = 32, 2.0
RATE, WARM_UP = 2e-4, 0.05

FLOAT = torch.bfloat16 if DEVICE == "cuda" else torch.float32


class Product(nn.Module):
    """A frozen matrix with a trained low-rank update."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("weight", weight.to(DEVICE, FLOAT))
        self.register_buffer("bias", None if bias is None else bias.to(DEVICE, FLOAT))
        inputs, outputs = weight.shape[1], weight.shape[0]
        self.down = nn.Parameter(torch.randn(RANK, inputs, device=DEVICE) / inputs**0.5)
        self.up = nn.Parameter(torch.zeros(outputs, RANK, device=DEVICE))

    def forward(self, inputs: Tensor) -> Tensor:
        added = functional.linear(
            functional.linear(inputs, self.down.to(inputs.dtype)), self.up.to(inputs.dtype)
        )
        return functional.linear(inputs, self.weight, self.bias) + STRENGTH * added


class Kept:
    """One layer's cache of earlier tokens during generation; `mask` is the attention mask."""

    def __init__(self) -> None:
        self.mask: Tensor | None = None
        self._earlier: tuple[Tensor, Tensor] | None = None

    def with_earlier(self, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        if self._earlier is not None:
            key, value = (
                torch.cat(both, 2) for both in zip(self._earlier, (key, value), strict=True)
            )
        self._earlier = key, value
        return key, value


class Layer(nn.Module):
    def __init__(self, weights: Weights, number: int) -> None:
        super().__init__()

        def part(*names: str) -> Tensor:
            return torch.cat([weights.whole(f"blk.{number}.{name}") for name in names])

        heads = ("attn_q", "attn_k", "attn_v")
        self.attend = Product(
            part(*(f"{one}.weight" for one in heads)), part(*(f"{one}.bias" for one in heads))
        )
        self.attended = Product(part("attn_output.weight"))
        self.widen, self.narrow = (
            Product(part("ffn_gate.weight", "ffn_up.weight")),
            Product(part("ffn_down.weight")),
        )
        self.attend_norm, self.widen_norm = (
            part(f"{name}_norm.weight").to(DEVICE, FLOAT) for name in ("attn", "ffn")
        )

    def forward(
        self, states: Tensor, cosine: Tensor, sine: Tensor, kept: Kept | None = None
    ) -> Tensor:
        texts, tokens, _ = states.shape
        shared = SHARED_HEADS * HEAD_WIDTH
        query, key, value = self.attend(normed(states, self.attend_norm)).split(
            (WIDTH, shared, shared), -1
        )
        query = _rotated(query.view(texts, tokens, HEADS, HEAD_WIDTH).transpose(1, 2), cosine, sine)
        key = _rotated(
            key.view(texts, tokens, SHARED_HEADS, HEAD_WIDTH).transpose(1, 2), cosine, sine
        )
        value = value.view(texts, tokens, SHARED_HEADS, HEAD_WIDTH).transpose(1, 2)
        if kept is not None:
            key, value = kept.with_earlier(key, value)
        key, value = (one.repeat_interleave(HEADS // SHARED_HEADS, 1) for one in (key, value))
        # Padding is at the end, where no token attends, unless a mask gives its position.
        mask = None if kept is None else kept.mask
        found = functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, is_causal=mask is None
        )
        states = states + self.attended(found.transpose(1, 2).reshape(texts, tokens, WIDTH))
        gate, wide = self.widen(normed(states, self.widen_norm)).chunk(2, -1)
        return states + self.narrow(functional.silu(gate) * wide)


class LanguageModel(nn.Module):
    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.words = weights.words.to(DEVICE, FLOAT)
        with ThreadPoolExecutor() as pool:
            self.layers = nn.ModuleList(
                pool.map(lambda number: Layer(weights, number), range(LAYERS))
            )
        self.norm = weights.whole("output_norm.weight").to(DEVICE)
        angles = torch.outer(
            torch.arange(LONGEST), ROTATION_BASE ** -(torch.arange(0, HEAD_WIDTH, 2) / HEAD_WIDTH)
        )
        both = torch.cat((angles, angles), -1).to(DEVICE)
        self.cosine, self.sine = both.cos().to(FLOAT), both.sin().to(FLOAT)

    def states(
        self, ids: Tensor, places: Tensor | None = None, kept: Sequence[Kept] | None = None
    ) -> Tensor:
        """`places` are token positions if not 0, 1, ...; `kept` has one cache per layer."""
        states = self.words[ids]
        own = slice(ids.shape[1]) if places is None else places
        cosine, sine = self.cosine[own], self.sine[own]
        if places is not None:
            cosine, sine = cosine.unsqueeze(1), sine.unsqueeze(1)
        for number, layer in enumerate(self.layers):
            states = layer(states, cosine, sine, kept[number] if kept else None)
        return states

    def ended(self, states: Tensor) -> Tensor:
        return normed(states.float(), self.norm)


class Weights:
    def __init__(self, folder: Path) -> None:
        self._raw: dict[str, tuple[np.ndarray, str]] = {}
        for path in sorted(folder.glob("w[0-9]*.npz")):
            with np.load(path) as piece:
                for name in piece.files:
                    self._raw[name.split("|")[0]] = piece[name], name.split("|")[1]
        with np.load(folder / "words.npz") as words:
            self.words = _whole(words["words"], str(words["type"]))
            self.yes_against_no = torch.from_numpy(words["yes"] - words["no"]).float()

    def whole(self, name: str) -> Tensor:
        return _whole(*self._raw[name])


def _whole(values: np.ndarray, kind: str) -> Tensor:
    plain = values if kind == "F32" else dequantize(values, GGMLQuantizationType[kind])
    return torch.tensor(np.ascontiguousarray(plain), dtype=torch.float32)


def normed(states: Tensor, weight: Tensor) -> Tensor:
    return functional.rms_norm(states, (WIDTH,), weight, EPSILON)


def _rotated(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = heads.chunk(2, -1)
    return heads * cosine + torch.cat((-second, first), -1) * sine


def tuned(model: LanguageModel, loss_of: Callable[[], Tensor], seconds: float) -> list[float]:
    """Train the low-rank updates and return each step's loss.

    The rate falls to zero with the time.
    """
    adam = torch.optim.AdamW(model.parameters(), lr=RATE, weight_decay=0.0, betas=(0.9, 0.98))
    began, losses = time.monotonic(), []
    while (spent := (time.monotonic() - began) / seconds) < 1:
        for group in adam.param_groups:
            group["lr"] = RATE * (
                spent / WARM_UP if spent < WARM_UP else (1 - spent) / (1 - WARM_UP)
            )
        loss = loss_of()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()
        adam.zero_grad()
        losses.append(loss.detach())
    return torch.stack(losses).tolist()


def said_with_time() -> Callable[..., None]:
    """Print with elapsed seconds."""
    began = time.monotonic()
    return lambda *what: print(f"{time.monotonic() - began:.0f} s:", *what, flush=True)
