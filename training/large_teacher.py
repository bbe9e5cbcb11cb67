"""Tune a large language model to tell what answers and what updates, and let it judge pairs that nobody labelled.

    python training/large_teacher.py packed --output OUT [--seconds 290] [--scoring 45]

`packed` is what pack_pairs.py wrote. Needs one GPU of 80 GB and of the library `gguf` the files quants.py,
constants.py and lazy.py. The weights stay as they are; low-rank additions to every product are learnt, on both tasks at
once, and the score of a pair is how much rather the model would say Yes than No. Unlabelled pairs are those that share
rare words: a question and memories that it was not labelled with, two memories of any store.

Writes `check.npz` (scores of pairs that it never saw), `answers.npz` and `changes.npz` (unlabelled pairs with their
scores, not a number where the time was over) and `own.npz` (what it says of the pairs of changes that it was tuned on).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import torch
from gguf.constants import GGMLQuantizationType
from gguf.quants import dequantize
from torch import Tensor, nn
from torch.nn import functional

from packed import ANSWERS, CHANGES, DEVICE, TASKS, Arrays, Material, Pair, figures

WIDTH, HEADS, SHARED_HEADS, HEAD_WIDTH, LAYERS = 1536, 12, 2, 128, 28
EPSILON, ROTATION_BASE, LONGEST = 1e-6, 1e6, 1024
RANK, STRENGTH = 32, 2.0
RATE, WARM_UP = 2e-4, 0.05
# Of one step: own lists, general ones; written pairs, neighbours.
OWN, GENERAL, WRITTEN, NEIGHBOURS = 20, 3, 32, 12
# A pair of changes weighs so much: written, of one store, of different stores. With the times swapped it is one too.
WEIGHTS, SWAPPED, SWAPPED_WEIGHT = (1.0, 0.5, 0.3), 0.3, 0.5
LISTWISE = 0.5
TOKENS_A_BATCH = 65_536
# Memories that share most with a question, and with a memory; longer ones no change is looked for in.
NEAR_A_QUESTION, NEAR_A_MEMORY, LONGEST_CHANGE, MOST_CHANGES = 5, 5, 120, 70_000
READER_WORDS = 30_522

FLOAT = torch.bfloat16 if DEVICE == "cuda" else torch.float32


class Product(nn.Module):
    """A fixed matrix, and a low-rank addition that is learnt."""

    def __init__(self, weight: Tensor, bias: Tensor | None = None) -> None:
        super().__init__()
        self.register_buffer("weight", weight.to(DEVICE, FLOAT))
        self.register_buffer("bias", None if bias is None else bias.to(DEVICE, FLOAT))
        inputs, outputs = weight.shape[1], weight.shape[0]
        self.down = nn.Parameter(torch.randn(RANK, inputs, device=DEVICE) / inputs**0.5)
        self.up = nn.Parameter(torch.zeros(outputs, RANK, device=DEVICE))

    def forward(self, inputs: Tensor) -> Tensor:
        added = functional.linear(functional.linear(inputs, self.down.to(inputs.dtype)), self.up.to(inputs.dtype))
        return functional.linear(inputs, self.weight, self.bias) + STRENGTH * added


class Layer(nn.Module):
    def __init__(self, weights: Weights, number: int) -> None:
        super().__init__()

        def part(*names: str) -> Tensor:
            return torch.cat([weights.whole(f"blk.{number}.{name}") for name in names])

        heads = ("attn_q", "attn_k", "attn_v")
        self.attend = Product(part(*(f"{one}.weight" for one in heads)), part(*(f"{one}.bias" for one in heads)))
        self.attended = Product(part("attn_output.weight"))
        self.widen, self.narrow = Product(part("ffn_gate.weight", "ffn_up.weight")), Product(part("ffn_down.weight"))
        self.attend_norm, self.widen_norm = (part(f"{name}_norm.weight").to(DEVICE, FLOAT) for name in ("attn", "ffn"))

    def forward(self, states: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
        texts, tokens, _ = states.shape
        shared = SHARED_HEADS * HEAD_WIDTH
        query, key, value = self.attend(_normed(states, self.attend_norm)).split((WIDTH, shared, shared), -1)
        query = _rotated(query.view(texts, tokens, HEADS, HEAD_WIDTH).transpose(1, 2), cosine, sine)
        key = _rotated(key.view(texts, tokens, SHARED_HEADS, HEAD_WIDTH).transpose(1, 2), cosine, sine)
        value = value.view(texts, tokens, SHARED_HEADS, HEAD_WIDTH).transpose(1, 2)
        key, value = (one.repeat_interleave(HEADS // SHARED_HEADS, 1) for one in (key, value))
        # Padding stands behind, where no token of the text looks.
        found = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        states = states + self.attended(found.transpose(1, 2).reshape(texts, tokens, WIDTH))
        gate, wide = self.widen(_normed(states, self.widen_norm)).chunk(2, -1)
        return states + self.narrow(functional.silu(gate) * wide)


class Teacher(nn.Module):
    def __init__(self, weights: Weights) -> None:
        super().__init__()
        self.words = weights.words.to(DEVICE, FLOAT)
        with ThreadPoolExecutor() as pool:
            self.layers = nn.ModuleList(pool.map(lambda number: Layer(weights, number), range(LAYERS)))
        self.norm = weights.whole("output_norm.weight").to(DEVICE)
        self.heads = nn.Parameter(weights.yes_against_no.repeat(len(TASKS), 1).to(DEVICE))
        self.biases = nn.Parameter(torch.zeros(len(TASKS), device=DEVICE))
        angles = torch.outer(torch.arange(LONGEST), ROTATION_BASE ** -(torch.arange(0, HEAD_WIDTH, 2) / HEAD_WIDTH))
        both = torch.cat((angles, angles), -1).to(DEVICE)
        self.cosine, self.sine = both.cos().to(FLOAT), both.sin().to(FLOAT)

    def forward(self, ids: Tensor, last: Tensor, tasks: Tensor) -> Tensor:
        states = self.words[ids]
        for layer in self.layers:
            states = layer(states, self.cosine[: ids.shape[1]], self.sine[: ids.shape[1]])
        end = _normed(states[torch.arange(len(ids), device=DEVICE), last].float(), self.norm)
        return (end * self.heads[tasks]).sum(-1) + self.biases[tasks]


class Weights:
    """The quantised weights of all pieces."""

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


def _normed(states: Tensor, weight: Tensor) -> Tensor:
    return functional.rms_norm(states, (WIDTH,), weight, EPSILON)


def _rotated(heads: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    first, second = heads.chunk(2, -1)
    return heads * cosine + torch.cat((-second, first), -1) * sine


def main() -> None:
    options = _options()
    began = time.monotonic()

    def say(*what: object) -> None:
        print(f"{time.monotonic() - began:.0f} s:", *what, flush=True)

    with np.load(options.packed / "pairs.npz") as packed:
        material = Material({name: packed[name] for name in packed.files})
    teacher = Teacher(Weights(options.packed))
    say("loaded")
    before = checked(teacher, material)
    say("as it comes", figures(before["changes"], material.arrays))
    say(tune(teacher, material, options.seconds), "steps")
    after = checked(teacher, material)
    say("tuned", figures(after["changes"], material.arrays))
    options.output.mkdir(parents=True, exist_ok=True)
    _keep(options.output / "check.npz", {**after, **{f"{name}_before": value for name, value in before.items()}})
    asked, answering, changes = unlabelled(material)
    scores = scored(teacher, material, CHANGES, changes[:, 1], changes[:, 0], options.scoring)
    _keep(options.output / "changes.npz", {"new": changes[:, 0], "old": changes[:, 1], "score": scores})
    scores = scored(teacher, material, ANSWERS, answering, material.arrays["list_query"][asked], options.scoring * 1.6)
    _keep(options.output / "answers.npz", {"list": asked, "text": answering, "score": scores})
    arrays = material.arrays
    own = scored(teacher, material, CHANGES, arrays["train_old"], arrays["train_new"], options.scoring)
    _keep(options.output / "own.npz", {"changes": own})
    say("judged", len(changes), "pairs of memories and", len(asked), "of questions and memories")


def tune(teacher: Teacher, material: Material, seconds: float) -> int:
    chance = np.random.default_rng(0)
    adam = torch.optim.AdamW(teacher.parameters(), lr=RATE, weight_decay=0.0, betas=(0.9, 0.98))
    began, steps = time.monotonic(), 0
    while (spent := (time.monotonic() - began) / seconds) < 1:
        for group in adam.param_groups:
            group["lr"] = RATE * (spent / WARM_UP if spent < WARM_UP else (1 - spent) / (1 - WARM_UP))
        loss = _answers_loss(teacher, material, chance) + _changes_loss(teacher, material, chance)
        loss.backward()
        nn.utils.clip_grad_norm_(teacher.parameters(), 1.0)
        adam.step()
        adam.zero_grad()
        steps += 1
    return steps


def _answers_loss(teacher: Teacher, material: Material, chance: np.random.Generator) -> Tensor:
    """Of each list what answers, what stands next to it (its siblings), and one by lot."""
    pairs, labels, weights, lists = [], [], [], []
    chosen = [*chance.choice(material.own, OWN, False), *chance.choice(material.general, GENERAL, False)]
    for row, number in enumerate(chosen):
        texts, label = material.list_of(number)
        picked = np.unique([*np.flatnonzero(label)[:2], *range(min(len(texts), 4)), chance.integers(len(texts))])
        query = int(material.arrays["list_query"][number])
        pairs += [Pair(ANSWERS, int(texts[place]), query) for place in picked]
        labels += label[picked].tolist()
        none = max(1, int((label[picked] == 0).sum()))
        weights += [1.0 if one else 1.0 / none for one in label[picked]]
        lists += [row] * len(picked)
    scores, label, weight = _scores(teacher, material, pairs), _tensor(labels), _tensor(weights)
    pointwise = (weight * functional.binary_cross_entropy_with_logits(scores, label, reduction="none")).sum()
    rows, top = torch.tensor(lists, device=DEVICE), scores.max().detach()
    total = torch.zeros(len(chosen), device=DEVICE).index_add(0, rows, (scores - top).exp()).log() + top
    listwise = (label * (total[rows] - scores)).sum() / label.sum().clamp(min=1)
    return pointwise / len(chosen) + LISTWISE * listwise


def _changes_loss(teacher: Teacher, material: Material, chance: np.random.Generator) -> Tensor:
    arrays = material.arrays
    chosen = [*chance.choice(material.written, WRITTEN, False), *chance.choice(material.neighbours, NEIGHBOURS, False)]
    pairs, weights = [], []
    for row in chosen:
        old, new, kind = int(arrays["train_old"][row]), int(arrays["train_new"][row]), int(arrays["train_kind"][row])
        swapped = kind == 0 and chance.random() < SWAPPED
        pairs.append(Pair(CHANGES, new, old) if swapped else Pair(CHANGES, old, new))
        weights.append(SWAPPED_WEIGHT if swapped else WEIGHTS[kind])
    weight, label = _tensor(weights), _tensor(arrays["train_update"][chosen])
    scores = _scores(teacher, material, pairs)
    losses = functional.binary_cross_entropy_with_logits(scores, label, reduction="none")
    return (weight * losses).sum() / weight.sum()


def _scores(teacher: Teacher, material: Material, pairs: Sequence[Pair]) -> Tensor:
    """Short and long ones apart: less padding."""
    order = np.argsort([len(material.tokens(pair)) for pair in pairs])
    parts = np.array_split(order, 2)
    found = torch.cat([teacher(*material.batch([pairs[place] for place in part])) for part in parts])
    return found[torch.as_tensor(np.argsort(order)).to(DEVICE)]


def _tensor(values: object) -> Tensor:
    return torch.as_tensor(np.asarray(values, dtype=np.float32)).to(DEVICE)


@torch.no_grad()
def scored(
    teacher: Teacher, material: Material, task: int, firsts: np.ndarray, seconds: np.ndarray, limit: float = np.inf
) -> np.ndarray:
    """Scores of pairs, the short ones first; after so many seconds the rest has none."""
    lengths = material.lengths[firsts] + material.lengths[seconds] + 32
    order, begun, start = np.argsort(lengths, kind="stable"), time.monotonic(), 0
    found = np.full(len(order), np.nan, np.float32)
    while start < len(order) and time.monotonic() - begun < limit:
        count = max(8, TOKENS_A_BATCH // int(lengths[order[min(start + 512, len(order) - 1)]]))
        part = order[start : start + count]
        pairs = [Pair(task, int(firsts[place]), int(seconds[place])) for place in part]
        found[part] = teacher(*material.batch(pairs)).float().cpu().numpy()
        start += count
    return found


def checked(teacher: Teacher, material: Material) -> dict[str, np.ndarray]:
    arrays = material.arrays
    rows = arrays["candidates"]
    return {
        "changes": scored(teacher, material, CHANGES, arrays["check_old"], arrays["check_new"]),
        "candidates": scored(teacher, material, ANSWERS, rows[:, 3], rows[:, 2]),
    }


def unlabelled(material: Material) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Numbers of lists with memories near their questions, and pairs of memories that are near each other."""
    arrays = material.arrays
    memories = np.unique(np.concatenate([material.list_of(int(number))[0] for number in material.own]))
    everything = np.union1d(memories, np.concatenate([arrays["train_new"], arrays["train_old"]]))
    table = _counted(arrays, everything)
    rarity = (len(everything) / (1 + table.sum(0, dtype=torch.float32))).log().clamp(min=0).to(table.dtype)
    table = _unit(table * rarity)
    own = table[torch.as_tensor(np.searchsorted(everything, memories)).to(DEVICE)]
    return *_near_questions(material, memories, own, rarity), _near_each_other(arrays, everything, table)


def _near_questions(
    material: Material, memories: np.ndarray, table: Tensor, rarity: Tensor
) -> tuple[np.ndarray, np.ndarray]:
    lists, texts = [], []
    for start in range(0, len(material.own), 2048):
        part = material.own[start : start + 2048]
        queries = _unit(_counted(material.arrays, material.arrays["list_query"][part]) * rarity)
        nearest = memories[(queries @ table.T).topk(NEAR_A_QUESTION + 4, 1).indices.cpu().numpy()]
        for number, near in zip(part, nearest, strict=True):
            fresh = near[~np.isin(near, material.list_of(number)[0])][:NEAR_A_QUESTION]
            lists += [number] * len(fresh)
            texts += fresh.tolist()
    return np.array(lists), np.array(texts)


def _near_each_other(arrays: Arrays, memories: np.ndarray, table: Tensor) -> np.ndarray:
    known = {*zip(arrays["train_new"].tolist(), arrays["train_old"].tolist(), strict=True)}
    short, pairs = arrays["teacher_lengths"] < LONGEST_CHANGE, []
    for start in range(0, len(memories), 2048):
        nearest = memories[(table[start : start + 2048] @ table.T).topk(NEAR_A_MEMORY + 1, 1).indices.cpu().numpy()]
        for new, near in zip(memories[start : start + 2048].tolist(), nearest.tolist(), strict=True):
            fresh = [old for old in near if old != new and not {(new, old), (old, new)} & known]
            pairs += [(new, old) for old in fresh if short[new] and short[old]]
    return np.array(pairs)[np.random.default_rng(1).permutation(len(pairs))[:MOST_CHANGES]]


def _counted(arrays: Arrays, numbers: np.ndarray) -> Tensor:
    table = torch.zeros(len(numbers), READER_WORDS, device=DEVICE, dtype=torch.float16)
    for row, number in enumerate(numbers):
        start = arrays["reader_starts"][number]
        words = np.unique(arrays["reader_ids"][start : start + arrays["reader_lengths"][number]])
        table[row, torch.as_tensor(words.astype(np.int64)).to(DEVICE)] = 1
    return table


def _unit(table: Tensor) -> Tensor:
    return table / (table.float().norm(dim=1, keepdim=True) + 1e-6).to(table.dtype)


def _keep(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    small = {name: value.astype(np.float16 if value.dtype.kind == "f" else np.int32) for name, value in arrays.items()}
    np.savez_compressed(path, **small)  # type: ignore[arg-type]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packed", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=290.0, help="of tuning")
    parser.add_argument("--scoring", type=float, default=45.0, help="the most seconds for pairs of changes")
    return parser.parse_args()


if __name__ == "__main__":
    main()
