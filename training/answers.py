"""Teach a shipped reranker whether a memory answers a question, and score stores with models that did not see them.

    python training/answers.py --model reranker-6.npz --tokenizer tokenizer.json --lists answers.json.xz \
        --candidates train.json.xz dev.json.xz --output OUT [--relu] [--seconds 60]

Starts from the weights of rerankers.py, or `unpack_onnx.py`'s; the word table stays as it is. The loss is pointwise
(a score above 0 means: it answers) and by list; on question and passage sets it is held to what the model thought
before. Two halves of the small stores are trained apart, so that each can be scored by a model that never saw it:
what is fitted on these scores later must not trust them more than it may. Writes the weights without the word table,
the halves' in eight bits, and OUT/scores-NAME.npz. `--again` reads the weights that OUT has, to score other candidates.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn import functional

from bases import packed
from encoder import Reranker, Shape, State, Texts, load_half, load_reranker, ready, save_half, scored, shape_of
from optimiser import ClockedAdamW

LONGEST_TOKENS = 300
LISTS_A_STEP = 96
RATE = 6e-5
# Of the lists of one step so many are of memories; the rest keep the reranker what it was.
OWN_SHARE = 0.5
HELD_TO_BEFORE = 0.5
WORDS = "encoder.words.weight"


class Material:
    """All texts tokenised once, and the lists as numbers of texts."""

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
    stores = {path.name.partition(".")[0]: _candidates(material, path) for path in options.candidates}
    texts = material.texts()
    start = load_reranker(options.model, options.words)
    shape = shape_of(start, options.relu)
    found: dict[str, Any] = {}
    for name, state in states(options, start, shape, texts, lists, device):
        found |= {f"{store}-{name}": _score(state, shape, texts, pairs, device) for store, pairs in stores.items()}
    for name, pairs in stores.items():
        found |= {f"{name}-{column}": pairs[column] for column in ("query", "place", "half")}
    np.savez_compressed(options.output / f"scores-{options.model.stem}.npz", **found)


def states(
    options: argparse.Namespace, start: State, shape: Shape, texts: Texts, lists: list[dict[str, Any]], device: str
) -> Iterator[tuple[str, State]]:
    """The model before, both halves, and the whole, trained and written, or read where they were."""
    yield "before", start
    before = [] if options.again else _scores(start, shape, texts, lists, device)
    options.output.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(("half0", "half1", "whole")):
        path = options.output / f"{options.model.stem}.{name}.npz"
        if options.again:
            yield name, {**start, **load_half(path)}
            continue
        seen = [number for number, one in enumerate(lists) if name == "whole" or one["half"] in (None, seed)]
        state = trained(start, shape, texts, lists, seen, before, options, device, seed)
        kept = {key: value for key, value in state.items() if key != WORDS}
        if name == "whole":
            save_half(kept, path)
        else:
            np.savez(path, **packed({key: value.numpy() for key, value in kept.items()}))
        yield name, state


def trained(
    start: State,
    shape: Shape,
    texts: Texts,
    lists: list[dict[str, Any]],
    seen: list[int],
    before: list[np.ndarray],
    options: argparse.Namespace,
    device: str,
    seed: int,
) -> State:
    reranker = ready(Reranker(shape), start, device, training=True)
    reranker.encoder.words.weight.requires_grad_(False)
    optimiser = ClockedAdamW(reranker, RATE, options.seconds)
    own = [number for number in seen if lists[number]["group"] != "general"]
    general = [number for number in seen if lists[number]["group"] == "general"]
    chance, steps, told = random.Random(seed), 0, time.monotonic()
    few = int(LISTS_A_STEP * OWN_SHARE)
    while optimiser.spent < 1:
        chosen = chance.sample(own, few) + chance.sample(general, LISTS_A_STEP - few)
        loss = _loss(
            reranker, texts, [lists[number] for number in chosen], [before[number] for number in chosen], device
        )
        loss.backward()
        optimiser.step()
        steps += 1
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"seed {seed} step {steps} loss {float(loss):.4f} spent {optimiser.spent:.2f}", flush=True)
    print(f"seed {seed}: {steps} steps, {steps * few / max(1, len(own)):.1f} rounds of {len(own)} lists", flush=True)
    return {**start, **{name: value.detach().float().cpu() for name, value in optimiser.state().items()}}


def _loss(
    reranker: Reranker, texts: Texts, lists: list[dict[str, Any]], before: list[np.ndarray], device: str
) -> torch.Tensor:
    queries = np.concatenate([[one["query"]] * len(one["texts"]) for one in lists])
    scores = scored(reranker, texts, queries, np.concatenate([one["texts"] for one in lists]))
    longest = max(len(one["texts"]) for one in lists)
    inside = np.zeros((len(lists), longest), dtype=bool)
    label, earlier = np.zeros_like(inside, dtype=np.float32), np.zeros_like(inside, dtype=np.float32)
    for row, one in enumerate(lists):
        inside[row, : len(one["texts"])] = True
        label[row, : len(one["texts"])] = one["labels"]
        earlier[row, : len(one["texts"])] = before[row]
    mask, labels, old = (torch.as_tensor(array, device=device) for array in (inside, label, earlier))
    table = torch.full(mask.shape, -1e4, device=device).masked_scatter(mask, scores)
    # An answer weighs as much as all that is none.
    weights = torch.where(labels > 0, 1.0, 1.0 / ((labels == 0) & mask).sum(1, keepdim=True).clamp(min=1)) * mask
    pointwise = (weights * functional.binary_cross_entropy_with_logits(table, labels, reduction="none")).sum(1)
    shares, answers = functional.log_softmax(table, 1), labels.sum(1)
    listwise = -(shares * labels).sum(1) / answers.clamp(min=1)
    held = -(functional.softmax(old.masked_fill(~mask, -1e4), 1) * shares).sum(1)
    general = torch.tensor([one["group"] == "general" for one in lists], device=device)
    losses = torch.where(general, HELD_TO_BEFORE * (pointwise + listwise + held), pointwise + listwise)
    return losses.mean()


@torch.no_grad()
def _scores(state: State, shape: Shape, texts: Texts, lists: list[dict[str, Any]], device: str) -> list[np.ndarray]:
    reranker = ready(Reranker(shape), state, device)
    queries = np.concatenate([[one["query"]] * len(one["texts"]) for one in lists])
    found = scored(reranker, texts, queries, np.concatenate([one["texts"] for one in lists])).float().cpu().numpy()
    ends = np.cumsum([len(one["texts"]) for one in lists])
    return np.split(found, ends[:-1])


@torch.no_grad()
def _score(state: State, shape: Shape, texts: Texts, pairs: dict[str, Any], device: str) -> np.ndarray:
    reranker = ready(Reranker(shape), state, device)
    found = scored(reranker, texts, np.array(pairs["queries"]), np.array(pairs["texts"]))
    return np.asarray(found.float().cpu().numpy())


def _numbered(material: Material, one: dict[str, Any], known: list[str]) -> dict[str, Any]:
    group = one["group"]
    half = None if group == "general" else half_of(group)
    texts = np.array([material.number(known[place]) for place in one["texts"]])
    return {
        "group": group,
        "half": half,
        "query": material.number(one["query"]),
        "texts": texts,
        "labels": one["labels"],
    }


def _candidates(material: Material, path: Path) -> dict[str, Any]:
    """What `dump_features.py` would have read: the first candidates of each query, by the best of their texts."""
    with lzma.open(path) as file:
        readings = json.load(file)
    rows = [
        (reading["query"], place, material.number(reading["text"]), material.number(text))
        for reading in readings
        for text, place in zip(reading["texts"], reading["places"], strict=True)
    ]
    halves = {reading["query"]: half_of(reading["corpus"].removeprefix("life-")) for reading in readings}
    query, place, asked, read = (np.array(column) for column in zip(*rows, strict=True))
    half = np.array([halves[one] for one in query.tolist()])
    return {"query": query, "place": place, "half": half, "queries": asked, "texts": read}


def half_of(group: str) -> int:
    return sum(map(ord, group)) % 2


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--words", type=Path, help="the embedder whose word table the model was kept without")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--lists", type=Path, required=True)
    parser.add_argument("--candidates", type=Path, nargs="*", default=[], help="files that dump_features.py wrote")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--relu", action="store_true")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--again", action="store_true", help="score by the weights that OUT has")
    return parser.parse_args()


if __name__ == "__main__":
    main()
