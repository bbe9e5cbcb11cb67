r"""Teach a shipped reranker whether a memory answers, and score stores unseen in training.

python training/answers.py --model reranker-12.npz --tokenizer tokenizer.json \
    --lists answers.json.xz --candidates dev.json.xz --output OUT [--relu] [--seconds 60] \
    [--seeds 3] [--teacher teacher.whole.npz]

Starts from the weights of rerankers.py or `unpack_onnx.py`; the word table is frozen. The loss is
pointwise (a score above 0 means an answer) and listwise. On question and passage sets, or with a
teacher on all lists, it is also distilled from the earlier model or the teacher. Models of several
seeds are averaged. Writes weights without the word table, and OUT/scores-NAME.npz with candidates'
scores on unseen stores, before and after.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn import functional

from encoder import (
    Reranker,
    Shape,
    State,
    Texts,
    averaged,
    load_reranker,
    ready,
    save_half,
    scored,
    shape_of,
)
from optimiser import ClockedAdamW

LONGEST_TOKENS = 300
LISTS_A_STEP = 96
RATE = 6e-5
# Share of memory lists in a step; the rest preserve the reranker's old skills.
OWN_SHARE = 0.5
HELD_TO_BEFORE = 0.5
# Weight of the teacher's opinion in a memory list's target.
TAUGHT = 0.5
WORDS = "encoder.words.weight"


class Material:
    def __init__(self, tokenizer: Tokenizer, device: str, longest: int = LONGEST_TOKENS) -> None:
        self._tokenizer, self._device, self._longest = tokenizer, device, longest
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def texts(self) -> Texts:
        encoded = self._tokenizer.encode_batch(list(self._numbers), add_special_tokens=False)
        ids = [one.ids[: self._longest] or [0] for one in encoded]
        lengths = np.array([len(one) for one in ids])
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        return Texts(np.concatenate(ids).astype(np.int32), starts, lengths, self._device)


def main() -> None:
    options = _options()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = Tokenizer.from_file(str(options.tokenizer))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    material = Material(tokenizer, device)
    with lzma.open(options.lists) as file:
        gathered = json.load(file)
    lists = [_numbered(material, one, gathered["texts"]) for one in gathered["lists"]]
    stores = {
        path.name.partition(".")[0]: _candidates(material, path) for path in options.candidates
    }
    texts = material.texts()
    start = load_reranker(options.model, options.words)
    shape = shape_of(start, options.relu)
    guide = load_reranker(options.teacher, options.words) if options.teacher else start
    guiding = _scores(guide, shape_of(guide, guide is start and options.relu), texts, lists, device)
    each = [
        trained(start, shape, texts, lists, guiding, options, seed, device)
        for seed in _seeds(options)
    ]
    state = averaged(each, [1 / len(each)] * len(each))
    options.output.mkdir(parents=True, exist_ok=True)
    kept = {key: value for key, value in state.items() if key != WORDS}
    save_half(kept, options.output / f"{options.model.stem}.whole.npz")
    found: dict[str, Any] = {}
    for name, pairs in stores.items():
        found |= {f"{name}-{column}": pairs[column] for column in ("query", "place")}
        found[f"{name}-before"] = _score(start, shape, texts, pairs, device)
        found[f"{name}-whole"] = _score(state, shape, texts, pairs, device)
    np.savez_compressed(options.output / f"scores-{options.model.stem}.npz", **found)


def trained(
    start: State,
    shape: Shape,
    texts: Texts,
    lists: list[dict[str, Any]],
    guiding: list[np.ndarray],
    options: argparse.Namespace,
    seed: int,
    device: str,
) -> State:
    reranker = ready(Reranker(shape), start, device, training=True)
    reranker.encoder.words.weight.requires_grad_(False)
    optimiser = ClockedAdamW(reranker, options.rate, options.seconds)
    own = [number for number, one in enumerate(lists) if one["group"] != "general"]
    general = [number for number, one in enumerate(lists) if one["group"] == "general"]
    chance, steps, told = random.Random(seed), 0, time.monotonic()
    taught = TAUGHT if options.teacher else 0.0
    few = int(LISTS_A_STEP * OWN_SHARE)
    while optimiser.spent < 1:
        chosen = chance.sample(own, few) + chance.sample(general, LISTS_A_STEP - few)
        part, theirs = [lists[number] for number in chosen], [guiding[number] for number in chosen]
        loss = _loss(reranker, texts, part, theirs, taught, device)
        loss.backward()
        optimiser.step()
        steps += 1
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"step {steps} loss {loss.item():.4f} spent {optimiser.spent:.2f}", flush=True)
    print(
        f"{steps} steps, {steps * few / max(1, len(own)):.1f} rounds of {len(own)} lists",
        flush=True,
    )
    return {
        **start,
        **{name: value.detach().float().cpu() for name, value in optimiser.state().items()},
    }


def _loss(
    reranker: Reranker,
    texts: Texts,
    lists: list[dict[str, Any]],
    guiding: list[np.ndarray],
    taught: float,
    device: str,
) -> torch.Tensor:
    queries = np.concatenate([[one["query"]] * len(one["texts"]) for one in lists])
    scores = scored(reranker, texts, queries, np.concatenate([one["texts"] for one in lists]))
    longest = max(len(one["texts"]) for one in lists)
    inside = np.zeros((len(lists), longest), dtype=bool)
    label, guide = np.zeros_like(inside, dtype=np.float32), np.zeros_like(inside, dtype=np.float32)
    for row, one in enumerate(lists):
        inside[row, : len(one["texts"])] = True
        label[row, : len(one["texts"])] = one["labels"]
        guide[row, : len(one["texts"])] = guiding[row]
    mask, labels, theirs = (
        torch.as_tensor(array, device=device) for array in (inside, label, guide)
    )
    table = torch.full(mask.shape, -1e4, device=device).masked_scatter(mask, scores)
    # Answers weigh as much as all non-answers.
    weights = (
        torch.where(labels > 0, 1.0, 1.0 / ((labels == 0) & mask).sum(1, keepdim=True).clamp(min=1))
        * mask
    )
    wanted = (1 - taught) * labels + taught * theirs.sigmoid()
    pointwise = (
        weights * functional.binary_cross_entropy_with_logits(table, wanted, reduction="none")
    ).sum(1)
    shares, answers = functional.log_softmax(table, 1), labels.sum(1)
    listwise = -(shares * labels).sum(1) / answers.clamp(min=1)
    held = -(functional.softmax(theirs.masked_fill(~mask, -1e4), 1) * shares).sum(1)
    general = torch.tensor([one["group"] == "general" for one in lists], device=device)
    own = pointwise + (1 - taught) * listwise + taught * held
    losses = torch.where(general, HELD_TO_BEFORE * (pointwise + listwise + held), own)
    return losses.mean()


@torch.no_grad()
def _scores(
    state: State, shape: Shape, texts: Texts, lists: list[dict[str, Any]], device: str
) -> list[np.ndarray]:
    reranker = ready(Reranker(shape), state, device)
    queries = np.concatenate([[one["query"]] * len(one["texts"]) for one in lists])
    found = (
        scored(reranker, texts, queries, np.concatenate([one["texts"] for one in lists]))
        .float()
        .cpu()
        .numpy()
    )
    ends = np.cumsum([len(one["texts"]) for one in lists])
    return np.split(found, ends[:-1])


@torch.no_grad()
def _score(
    state: State, shape: Shape, texts: Texts, pairs: dict[str, Any], device: str
) -> np.ndarray:
    reranker = ready(Reranker(shape), state, device)
    found = scored(reranker, texts, np.array(pairs["queries"]), np.array(pairs["texts"]))
    return np.asarray(found.float().cpu().numpy())


def _numbered(material: Material, one: dict[str, Any], known: list[str]) -> dict[str, Any]:
    texts = np.array([material.number(known[place]) for place in one["texts"]])
    return {
        "group": one["group"],
        "query": material.number(one["query"]),
        "texts": texts,
        "labels": one["labels"],
    }


def _candidates(material: Material, path: Path) -> dict[str, Any]:
    with lzma.open(path) as file:
        readings = json.load(file)
    rows = [
        (reading["query"], place, material.number(reading["text"]), material.number(text))
        for reading in readings
        for text, place in zip(reading["texts"], reading["places"], strict=True)
    ]
    query, place, asked, read = (np.array(column) for column in zip(*rows, strict=True))
    return {"query": query, "place": place, "queries": asked, "texts": read}


def _seeds(options: argparse.Namespace) -> range:
    return range(options.first_seed, options.first_seed + options.seeds)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument(
        "--words", type=Path, help="embedder with the word table that the model file lacks"
    )
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--lists", type=Path, required=True)
    parser.add_argument(
        "--candidates", type=Path, nargs="*", default=[], help="files that dump_features.py wrote"
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--relu", action="store_true")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument(
        "--seeds",
        type=int,
        default=1,
        help="number of models to average, each trained for --seconds",
    )
    parser.add_argument(
        "--first-seed", type=int, default=0, help="several runs side by side take others"
    )
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument(
        "--teacher", type=Path, help="a reranker, taught the same, that this one learns from"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
