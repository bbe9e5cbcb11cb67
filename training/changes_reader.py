r"""Teach a reranker to read whether the newer of two statements updates the older.

python training/changes_reader.py --model reranker-12.npz --tokenizer tokenizer.json \
    --pairs changes.json.xz --output OUT [--relu] [--words other.npz] [--folds 2 --seeds 1] \
    [--seconds 25]

Models of several seeds are averaged. Scores of training pairs come from folds that did not see
them, so that a fit on top does not overtrust them. The word table is frozen and not written.
`--seconds` bounds one training, whose rate falls with the remaining time.
"""

from __future__ import annotations

import argparse
import json
import lzma
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tokenizers import Tokenizer
from torch.nn import functional

from answers import WORDS, Material
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
from packed import area, meet

RATE, WARM_UP, DECAY = 1.3e-4, 0.1, 0.01
EPOCHS, BATCH = 6, 256
FOLDS = 2
# Per statement: half of what the product reads.
LONGEST_TOKENS = 158
# A neighbor in another store is easy; one in the same store is what every save meets.
NEIGHBOUR_WEIGHT, STORE_WEIGHT = 0.3, 0.5
# A contradiction is symmetric, so swapping the times keeps the label. Words of change are not
# swapped.
SWAPPED, SWAPPED_WEIGHT = 0.5, 0.5
DROPOUT = 0.1
# Share of a pair's label taken from other readers that did not see it.
TAUGHT = 0.4


@dataclass(frozen=True)
class Effort:
    """The length of one training: steps, or seconds if they end first."""

    steps: int | None
    seconds: float
    batch: int


def trained(
    start: State,
    shape: Shape,
    texts: Texts,
    rows: Rows,
    seen: np.ndarray,
    seed: int,
    device: str,
    effort: Effort,
) -> State:
    torch.manual_seed(seed)
    chance = np.random.default_rng(seed)
    reader = ready(Reranker(shape), start, device)
    reader.float().train()
    reader.encoder.words.weight.requires_grad_(False)
    reader.encoder.norm.register_forward_hook(
        lambda _, __, out: functional.dropout(out, DROPOUT, reader.training)
    )
    for layer in reader.encoder.layers:
        for part in (layer.attended, layer.narrow):
            part.register_forward_hook(
                lambda _, __, out: functional.dropout(out, DROPOUT, reader.training)
            )
    learnt = [value for value in reader.parameters() if value.requires_grad]
    adam = torch.optim.AdamW(learnt, lr=RATE, weight_decay=DECAY, betas=(0.9, 0.98))
    steps = effort.steps or EPOCHS * len(seen) // effort.batch
    begun = time.monotonic()
    for step in range(steps):
        share = max(step / steps, (time.monotonic() - begun) / effort.seconds)
        if share >= 1:
            break
        for group in adam.param_groups:
            group["lr"] = RATE * (
                share / WARM_UP if share < WARM_UP else (1 - share) / (1 - WARM_UP)
            )
        chosen = seen[chance.integers(0, len(seen), effort.batch)]
        swap = (chance.random(effort.batch) < SWAPPED) & rows.written[chosen]
        new, old = (
            np.where(swap, rows.old[chosen], rows.new[chosen]),
            np.where(swap, rows.new[chosen], rows.old[chosen]),
        )
        weight = np.where(swap, SWAPPED_WEIGHT, rows.weight[chosen])
        with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
            scores = scored(reader, texts, new, old).float()
        label = torch.as_tensor(rows.label[chosen], device=device)
        loss = functional.binary_cross_entropy_with_logits(
            scores, label, torch.as_tensor(weight.astype(np.float32), device=device)
        )
        loss.backward()
        torch.nn.utils.clip_grad_norm_(learnt, 1.0)
        adam.step()
        adam.zero_grad()
    print(
        f"seed {seed}: {step + 1} of {steps} steps in {time.monotonic() - begun:.1f} s", flush=True
    )
    state = reader.state_dict()
    return {name: value.detach().float().cpu() for name, value in state.items()}


class Rows:
    def __init__(self, material: Material, lines: Sequence[dict[str, Any]]) -> None:
        self.new = np.array([material.number(line["new"]) for line in lines])
        self.old = np.array([material.number(line["old"]) for line in lines])
        self.label = np.array([line["update"] for line in lines], dtype=np.float32)
        self.written, self.store = (
            np.array([line[name] for line in lines], dtype=bool) for name in ("written", "store")
        )
        self.weight = np.where(
            self.written, 1.0, np.where(self.store, STORE_WEIGHT, NEIGHBOUR_WEIGHT)
        )
        # A store's rows, and so a text's, go into one fold.
        numbers: dict[str, int] = {}
        self.group = np.array([numbers.setdefault(line["group"], len(numbers)) for line in lines])


def with_head(state: State) -> State:
    if "hidden.weight" in state:
        return state
    torch.manual_seed(0)
    head = Reranker(Shape(layers=1)).state_dict()
    return {
        **state,
        **{
            name: head[name]
            for name in ("hidden.weight", "hidden.bias", "score.weight", "score.bias")
        },
    }


def read(state: State, shape: Shape, texts: Texts, rows: Rows, device: str) -> np.ndarray:
    reader = ready(Reranker(shape), state, device)
    with torch.no_grad():
        return np.asarray(scored(reader, texts, rows.new, rows.old).float().cpu().numpy())


def figures(scores: np.ndarray, rows: Rows) -> dict[str, float]:
    """Return the precision-recall meeting point and area under the curve: alone and in stores."""
    inside = rows.written | rows.store
    return {
        "meet": meet(scores[rows.written], rows.label[rows.written] > 0),
        "area": area(scores[rows.written], rows.label[rows.written] > 0),
        "meet in stores": meet(scores[inside], rows.label[inside] > 0),
        "area in stores": area(scores[inside], rows.label[inside] > 0),
        "others above 0": round(float((scores[~inside] > 0).mean()), 4),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument(
        "--words",
        type=Path,
        help="embedder with the word table, if the model's file has none",
    )
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--relu", action="store_true")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument(
        "--folds", type=int, default=FOLDS, help="0: none, where nothing is fitted on its scores"
    )
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="the most that one training may take"
    )
    parser.add_argument(
        "--steps", type=int, help="duration of one training, instead of rounds over the pairs"
    )
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument(
        "--taught", type=Path, nargs="*", default=[], help="scores of other readers to learn from"
    )
    options = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    tokenizer = Tokenizer.from_file(str(options.tokenizer))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    material = Material(tokenizer, device, LONGEST_TOKENS)
    with lzma.open(options.pairs, "rt", encoding="utf-8") as file:
        lines = json.load(file)
    train, check = Rows(material, lines["train"]), Rows(material, lines["check"])
    texts = material.texts()
    if options.taught:
        said = np.mean([np.load(path)["train"] for path in options.taught], axis=0)
        train.label = ((1 - TAUGHT) * train.label + TAUGHT / (1 + np.exp(-said))).astype(np.float32)
    start = with_head(load_reranker(options.model, options.words))
    shape = shape_of(start, options.relu)
    effort = Effort(options.steps, options.seconds, options.batch)
    fold = np.random.default_rng(0).permutation(int(train.group.max()) + 1)[train.group] % max(
        1, options.folds
    )
    scores = np.zeros(len(train.label), np.float32)
    for left_out in range(options.folds):
        state = trained(
            start, shape, texts, train, np.flatnonzero(fold != left_out), left_out, device, effort
        )
        found = read(state, shape, texts, train, device)
        scores[fold == left_out] = found[fold == left_out]
    if options.folds:
        print("folds", figures(scores, Rows(material, lines["train"])), flush=True)
    everything = np.arange(len(train.label))
    seeds = range(10, 10 + options.seeds)
    states = [
        trained(start, shape, texts, train, everything, seed, device, effort) for seed in seeds
    ]
    each = [read(state, shape, texts, check, device) for state in states]
    for one in each:
        print("check, one seed", figures(one, check), flush=True)
    mean = averaged(states, [1 / len(states)] * len(states))
    checked = read(mean, shape, texts, check, device)
    print("check, averaged weights", figures(checked, check), flush=True)
    print("check, averaged scores", figures(np.mean(each, axis=0), check), flush=True)
    options.output.mkdir(parents=True, exist_ok=True)
    name = options.model.stem
    np.savez_compressed(
        options.output / f"scores-{name}.npz", train=scores, check=checked, each=np.array(each)
    )
    kept = {key: value for key, value in mean.items() if key != WORDS}
    lower = {key for key in kept if key.startswith(tuple(f"encoder.layers.{n}." for n in range(3)))}
    save_half({key: kept[key] for key in lower}, options.output / f"changes-{name}.lower.npz")
    save_half(
        {key: kept[key] for key in kept.keys() - lower},
        options.output / f"changes-{name}.upper.npz",
    )


if __name__ == "__main__":
    main()
