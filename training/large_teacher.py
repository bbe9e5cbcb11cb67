r"""Tune a large language model to tell answers and updates, and let it score unlabeled pairs.

python training/large_teacher.py packed --output OUT [--seconds 290] [--scoring 45] \
    [--tasks answers changes]

`packed` is from pack_pairs.py. Needs one 80 GB GPU and the files quants.py, constants.py and
lazy.py of the library `gguf`. Low-rank updates of every product are trained on both tasks at once;
a pair's score is the model's preference for Yes over No. Unlabeled pairs share rare words: a
question with memories it was not labeled with, or two memories of any store. Pairs an earlier
teacher judged (`pack_pairs.py --judged`) are skipped.

Writes `check.npz` (scores of unseen pairs), `answers.npz` and `changes.npz` (scores of unlabeled
pairs, NaN once time ran out) and `own.npz` (scores of the change pairs it was tuned on).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from large_model import LanguageModel, Weights, said_with_time, tuned
from packed import ANSWERS, CHANGES, DEVICE, TASKS, Arrays, Material, Pair, figures

# Rows per step: own lists, general ones; written pairs, neighbors.
OWN, GENERAL, WRITTEN, NEIGHBOURS = 20, 3, 32, 12
# Weights of change pairs: written, same store, other stores. With swapped times, a pair counts once
# more.
WEIGHTS, SWAPPED, SWAPPED_WEIGHT = (1.0, 0.5, 0.3), 0.3, 0.5
LISTWISE = 0.5
TOKENS_A_BATCH = 65_536
# Nearest memories to take per question and per memory; longer texts are not searched for changes.
NEAR_A_QUESTION, NEAR_A_WRITTEN, NEAR_A_MEMORY, LONGEST_CHANGE, MOST_CHANGES = 5, 3, 5, 120, 70_000
READER_WORDS = 30_522


class Teacher(LanguageModel):
    """A scorer of pairs by the model's preference for Yes over No."""

    def __init__(self, weights: Weights) -> None:
        super().__init__(weights)
        self.heads = nn.Parameter(weights.yes_against_no.repeat(len(TASKS), 1).to(DEVICE))
        self.biases = nn.Parameter(torch.zeros(len(TASKS), device=DEVICE))

    def forward(self, ids: Tensor, last: Tensor, tasks: Tensor) -> Tensor:
        end = self.ended(self.states(ids)[torch.arange(len(ids), device=DEVICE), last])
        return (end * self.heads[tasks]).sum(-1) + self.biases[tasks]


def main() -> None:
    options = _options()
    say = said_with_time()
    with np.load(options.packed / "pairs.npz") as packed:
        material = Material({name: packed[name] for name in packed.files})
    teacher = Teacher(Weights(options.packed))
    say("loaded")
    before = checked(teacher, material)
    say("as it comes", figures(before["changes"], material.arrays))
    say(tune(teacher, material, options.tasks, options.seconds), "steps")
    after = checked(teacher, material)
    say("tuned", figures(after["changes"], material.arrays))
    options.output.mkdir(parents=True, exist_ok=True)
    _keep(
        options.output / "check.npz",
        {**after, **{f"{name}_before": value for name, value in before.items()}},
    )
    answers, changes = unlabelled(material)
    if "changes" in options.tasks:
        scores = scored(teacher, material, CHANGES, changes[:, 1], changes[:, 0], options.scoring)
        _keep(
            options.output / "changes.npz",
            {"new": changes[:, 0], "old": changes[:, 1], "score": scores},
        )
        say("judged", int(np.isfinite(scores).sum()), "of", len(changes), "pairs of memories")
        arrays = material.arrays
        own = scored(
            teacher, material, CHANGES, arrays["train_old"], arrays["train_new"], options.scoring
        )
        _keep(options.output / "own.npz", {"changes": own})
    if "answers" in options.tasks:
        scores = scored(
            teacher, material, ANSWERS, answers[:, 1], answers[:, 0], options.scoring * 2
        )
        _keep(
            options.output / "answers.npz",
            {"query": answers[:, 0], "text": answers[:, 1], "score": scores},
        )
        say(
            "judged",
            int(np.isfinite(scores).sum()),
            "of",
            len(answers),
            "pairs of a question and a memory",
        )


def tune(teacher: Teacher, material: Material, tasks: Sequence[str], seconds: float) -> int:
    chance = np.random.default_rng(0)
    losses = {"answers": _answers_loss, "changes": _changes_loss}

    def loss() -> Tensor:
        return torch.stack([losses[task](teacher, material, chance) for task in tasks]).sum()

    return len(tuned(teacher, loss, seconds))


def _answers_loss(teacher: Teacher, material: Material, chance: np.random.Generator) -> Tensor:
    pairs, labels, weights, lists = [], [], [], []
    chosen = [
        *chance.choice(material.own, OWN, False),
        *chance.choice(material.general, GENERAL, False),
    ]
    for row, number in enumerate(chosen):
        texts, label = material.list_of(number)
        picked = np.unique(
            [*np.flatnonzero(label)[:2], *range(min(len(texts), 4)), chance.integers(len(texts))]
        )
        query = int(material.arrays["list_query"][number])
        pairs += [Pair(ANSWERS, int(texts[place]), query) for place in picked]
        labels += label[picked].tolist()
        none = max(1, int((label[picked] == 0).sum()))
        weights += [1.0 if one else 1.0 / none for one in label[picked]]
        lists += [row] * len(picked)
    scores, label, weight = _scores(teacher, material, pairs), _tensor(labels), _tensor(weights)
    pointwise = (
        weight * functional.binary_cross_entropy_with_logits(scores, label, reduction="none")
    ).sum()
    rows, top = torch.tensor(lists, device=DEVICE), scores.max().detach()
    total = (
        torch.zeros(len(chosen), device=DEVICE).index_add(0, rows, (scores - top).exp()).log() + top
    )
    listwise = (label * (total[rows] - scores)).sum() / label.sum().clamp(min=1)
    return pointwise / len(chosen) + LISTWISE * listwise


def _changes_loss(teacher: Teacher, material: Material, chance: np.random.Generator) -> Tensor:
    arrays = material.arrays
    chosen = [
        *chance.choice(material.pairs, WRITTEN, False),
        *chance.choice(material.neighbours, NEIGHBOURS, False),
    ]
    pairs, weights = [], []
    for row in chosen:
        old, new, kind = (
            int(arrays["train_old"][row]),
            int(arrays["train_new"][row]),
            int(arrays["train_kind"][row]),
        )
        swapped = kind == 0 and chance.random() < SWAPPED
        pairs.append(Pair(CHANGES, new, old) if swapped else Pair(CHANGES, old, new))
        weights.append(SWAPPED_WEIGHT if swapped else WEIGHTS[kind])
    weight, label = _tensor(weights), _tensor(arrays["train_update"][chosen])
    scores = _scores(teacher, material, pairs)
    losses = functional.binary_cross_entropy_with_logits(scores, label, reduction="none")
    return (weight * losses).sum() / weight.sum()


def _scores(teacher: Teacher, material: Material, pairs: Sequence[Pair]) -> Tensor:
    order = np.argsort([len(material.tokens(pair)) for pair in pairs])
    parts = np.array_split(order, 2)
    found = torch.cat(
        [teacher(*material.batch([pairs[place] for place in part])) for part in parts]
    )
    return found[torch.as_tensor(np.argsort(order)).to(DEVICE)]


def _tensor(values: object) -> Tensor:
    return torch.as_tensor(np.asarray(values, dtype=np.float32)).to(DEVICE)


@torch.no_grad()
def scored(
    teacher: Teacher,
    material: Material,
    task: int,
    firsts: np.ndarray,
    seconds: np.ndarray,
    limit: float = np.inf,
) -> np.ndarray:
    """Score pairs, short ones first; after this many seconds the rest gets no score."""
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


def unlabelled(material: Material) -> tuple[np.ndarray, np.ndarray]:
    """Return questions with near memories, and later with earlier memories, as numbers."""
    arrays = material.arrays
    lists = {
        int(arrays["list_query"][number]): material.list_of(int(number))[0]
        for number in material.own
    }
    before = [arrays[name] for name in ("changes_new", "changes_old") if name in arrays]
    memories = np.unique(
        np.concatenate(
            [*lists.values(), material.written("sibling", "update", "other")[1], *before]
        )
    )
    everything = np.union1d(memories, np.concatenate([arrays["train_new"], arrays["train_old"]]))
    near = Near(arrays, everything)
    own = near.of(np.array([*lists]), memories, NEAR_A_QUESTION, lists)
    notes, asked = material.written("asked", "near")
    known = {
        question: np.array([note])
        for question, note in zip(asked.tolist(), notes.tolist(), strict=True)
    }
    written = near.of(asked, memories, NEAR_A_WRITTEN, known)
    answers = np.concatenate([own, np.stack([asked, notes], 1), written])
    return answers, _changes(material, near, everything)


def _changes(material: Material, near: Near, everything: np.ndarray) -> np.ndarray:
    arrays = material.arrays
    notes, later = material.written("update", "other", "sibling")
    new, old = (
        np.concatenate(
            [
                arrays[f"{part}_{side}"]
                for part in ("train", "changes")
                if f"{part}_new" in arrays
                for side in sides
            ]
        )
        for sides in _BOTH
    )
    order = np.argsort(new)
    known = dict(zip(*_grouped(new[order], old[order]), strict=True))
    own = near.of(everything, everything, NEAR_A_MEMORY, known)
    updates = material.written("update")
    known = {
        new: np.array([new, old]) for old, new in zip(*map(np.ndarray.tolist, updates), strict=True)
    }
    beside = near.of(updates[1], everything, 1, known)
    pairs = np.concatenate(
        [own[np.random.default_rng(1).permutation(len(own))[:MOST_CHANGES]], beside]
    )
    pairs = np.concatenate([pairs, np.stack([later, notes], 1)])
    short = arrays["teacher_lengths"] < LONGEST_CHANGE
    return pairs[short[pairs[:, 0]] & short[pairs[:, 1]]]


_BOTH = (("new", "old"), ("old", "new"))


def _grouped(keys: np.ndarray, values: np.ndarray) -> tuple[list[int], list[np.ndarray]]:
    each, starts = np.unique(keys, return_index=True)
    return each.tolist(), np.split(values, starts[1:])


class Near:
    """Texts by the rare words they share."""

    def __init__(self, arrays: Arrays, memories: np.ndarray) -> None:
        self._arrays, self._memories = arrays, memories
        table = _counted(arrays, memories)
        self._rarity = (
            (len(memories) / (1 + table.sum(0, dtype=torch.float32)))
            .log()
            .clamp(min=0)
            .to(table.dtype)
        )
        self._table = _unit(table * self._rarity)

    def of(
        self, texts: np.ndarray, memories: np.ndarray, most: int, known: Mapping[int, np.ndarray]
    ) -> np.ndarray:
        """Return (text, near memory) rows, without known pairs and the text itself."""
        table = self._table[torch.as_tensor(np.searchsorted(self._memories, memories)).to(DEVICE)]
        rows: list[tuple[int, int]] = []
        for start in range(0, len(texts), 2048):
            part = texts[start : start + 2048]
            queries = _unit(_counted(self._arrays, part) * self._rarity)
            nearest = memories[(queries @ table.T).topk(most + 4, 1).indices.cpu().numpy()]
            for text, found in zip(part.tolist(), nearest, strict=True):
                fresh = found[~np.isin(found, known.get(text, ())) & (found != text)][:most]
                rows += [(text, memory) for memory in fresh.tolist()]
        return np.array(rows, dtype=np.int64).reshape(-1, 2)


def _counted(arrays: Arrays, numbers: np.ndarray) -> Tensor:
    lengths, starts = (
        arrays["reader_lengths"][numbers].astype(np.int64),
        arrays["reader_starts"][numbers],
    )
    rows = np.repeat(np.arange(len(numbers)), lengths)
    places = np.repeat(starts - (np.cumsum(lengths) - lengths), lengths) + np.arange(lengths.sum())
    table = torch.zeros(len(numbers), READER_WORDS, device=DEVICE, dtype=torch.float16)
    table[
        torch.as_tensor(rows).to(DEVICE),
        torch.as_tensor(arrays["reader_ids"][places].astype(np.int64)).to(DEVICE),
    ] = 1
    return table


def _unit(table: Tensor) -> Tensor:
    return table / (table.float().norm(dim=1, keepdim=True) + 1e-6).to(table.dtype)


def _keep(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    small = {
        name: value.astype(np.float16 if value.dtype.kind == "f" else np.int32)
        for name, value in arrays.items()
    }
    np.savez_compressed(path, **small)  # type: ignore[arg-type]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("packed", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=290.0, help="of tuning")
    parser.add_argument(
        "--scoring", type=float, default=45.0, help="the most seconds for pairs of changes"
    )
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
