r"""Distill a large language model's scores of unlabeled pairs into a shipped reader.

python training/taught_readers.py answers packed --model reranker-12.npz --teacher OUT \
    --output OUT [--seconds 500] [--seeds 1] [--first-seed 0]
python training/taught_readers.py changes packed --model changes-12.npz --teacher OUT \
    --output OUT

`packed` is from pack_pairs.py, `--teacher` the folder of large_teacher.py, and the model
unpack_onnx.py's version of a shipped file (`--words`: the reranker, if the file has no word table).
Trains on the labels too. Writes NAME.npz without the word table, and `scores-NAME.npz` with scores
of pairs neither saw, before and after.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from answers import WORDS
from encoder import Reranker, State, Texts, averaged, load_half, ready, save_half, scored, shape_of
from optimiser import ClockedAdamW
from packed import DEVICE, Arrays, Material, figures

RATE = {"answers": 5e-5, "changes": 1e-4}
# Per statement, the product reads half of a pair's length.
LONGEST = {"answers": 300, "changes": 158}
# Rows per step: own and general lists; written pairs, neighbors and unlabeled ones.
OWN, GENERAL, ASKED = 112, 40, 160
WRITTEN, NEIGHBOURS, UNLABELLED = 192, 96, 640
GENERAL_WEIGHT, UNLABELLED_WEIGHT, STORE_WEIGHT, OTHERS_WEIGHT = 0.5, 0.6, 0.5, 0.3
# Weight of a memory near a model-written question.
ASKED_WEIGHT = 0.4
# A near unlabeled memory says more than a random one.
NEAR_WEIGHT = 1.5
# Share of a labeled change pair's target taken from the teacher.
TAUGHT = 0.3


class Lessons:
    """Lists with the teacher's scores of further memories, and change pairs."""

    def __init__(self, material: Material, teacher: Path | None) -> None:
        self.material, self.arrays = material, material.arrays
        said = {name: _said(self.arrays, teacher, name) for name in ("answers", "changes")}
        order = np.argsort(said["answers"]["query"], kind="stable")
        self._said = {name: value[order] for name, value in said["answers"].items()}
        listed = np.unique(self.arrays["list_query"])
        self._asked = np.setdiff1d(self._said["query"], listed)  # Those the model wrote.
        self._changes = said["changes"]
        self._label = self.arrays["train_update"].astype(np.float32)
        if teacher is not None:
            with np.load(teacher / "own.npz") as own:
                taught = own["changes"].astype(np.float32)
            mixed = (1 - TAUGHT) * self._label + TAUGHT * _likely(taught)
            self._label = np.where(np.isfinite(taught), mixed, self._label)

    def answers(
        self, chance: np.random.Generator
    ) -> Iterator[tuple[int, np.ndarray, np.ndarray, np.ndarray]]:
        material = self.material
        for number in (
            *chance.choice(material.own, OWN),
            *chance.choice(material.general, GENERAL),
        ):
            texts, labels = material.list_of(number)
            query = int(self.arrays["list_query"][number])
            near, said = self._near(query)
            none = max(1, int((labels == 0).sum()) + len(said))
            weights = np.concatenate(
                [np.where(labels > 0, 1.0, 1 / none), np.full(len(said), NEAR_WEIGHT / none)]
            )
            share = GENERAL_WEIGHT if self.arrays["list_general"][number] else 1.0
            yield (
                query,
                np.concatenate([texts, near]),
                np.concatenate([labels, said]),
                share * weights,
            )
        for query in chance.choice(self._asked, ASKED) if len(self._asked) else ():
            near, said = self._near(int(query))
            yield int(query), near, said, np.full(len(said), ASKED_WEIGHT)

    def _near(self, query: int) -> tuple[np.ndarray, np.ndarray]:
        inside = slice(*np.searchsorted(self._said["query"], (query, query + 1)))
        return self._said["text"][inside], _likely(self._said["score"][inside])

    def changes(
        self, chance: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        own = np.concatenate(
            [
                chance.choice(self.material.pairs, WRITTEN),
                chance.choice(self.material.neighbours, NEIGHBOURS),
            ]
        )
        others = chance.integers(0, len(self._changes["new"]), UNLABELLED)
        kinds = np.array([1.0, STORE_WEIGHT, OTHERS_WEIGHT])[self.arrays["train_kind"][own]]
        return (
            np.concatenate([self.arrays["train_new"][own], self._changes["new"][others]]),
            np.concatenate([self.arrays["train_old"][own], self._changes["old"][others]]),
            np.concatenate([self._label[own], _likely(self._changes["score"][others])]),
            np.concatenate([kinds, np.full(UNLABELLED, UNLABELLED_WEIGHT)]),
        )


def _said(packed: Arrays, teacher: Path | None, name: str) -> Arrays:
    before = {
        key.removeprefix(f"{name}_"): value
        for key, value in packed.items()
        if key.startswith(f"{name}_")
    }
    if teacher is None or not (teacher / f"{name}.npz").exists():
        return before
    with np.load(teacher / f"{name}.npz") as file:
        inside = np.isfinite(file["score"])
        now = {key: file[key][inside] for key in file.files}
    return {
        key: np.concatenate([before[key], value]) if before else value for key, value in now.items()
    }


def _likely(scores: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-scores.astype(np.float32))))


def main() -> None:
    options = _options()
    with np.load(options.packed / "pairs.npz") as packed:
        material = Material({name: packed[name] for name in packed.files})
    lessons, arrays = Lessons(material, options.teacher), material.arrays
    lengths = np.minimum(arrays["reader_lengths"].astype(np.int64), LONGEST[options.task])
    texts = Texts(arrays["reader_ids"], arrays["reader_starts"].astype(np.int64), lengths, DEVICE)
    start = load_half(options.model)
    if options.words:
        start[WORDS] = load_half(options.words)[WORDS]
    before = checked(start, texts, arrays, options.task)
    each = [trained(start, texts, lessons, options, seed) for seed in _seeds(options)]
    state = averaged(each, [1 / len(each)] * len(each))
    found = {"before": before, "after": checked(state, texts, arrays, options.task)}
    found["halfway"] = checked(averaged([state, start], [0.5, 0.5]), texts, arrays, options.task)
    options.output.mkdir(parents=True, exist_ok=True)
    names = {"query": arrays["candidates"][:, 0], "place": arrays["candidates"][:, 1]}
    np.savez_compressed(options.output / f"scores-{options.task}.npz", **found, **names)  # type: ignore[arg-type]
    for name, scores in found.items() if options.task == "changes" else ():
        print(name, figures(scores, arrays))
    without = {name: value for name, value in state.items() if name != WORDS}
    save_half(without, options.output / f"{options.task}.npz")


def trained(
    start: State, texts: Texts, lessons: Lessons, options: argparse.Namespace, seed: int
) -> State:
    reader = ready(Reranker(shape_of(start)), start, DEVICE, training=True)
    reader.encoder.words.weight.requires_grad_(False)
    optimiser = ClockedAdamW(reader, options.rate or RATE[options.task], options.seconds)
    chance, steps, losses = np.random.default_rng(seed), 0, []
    loss_of = _answers_loss if options.task == "answers" else _changes_loss
    while optimiser.spent < 1:
        loss = loss_of(reader, texts, lessons, chance)
        loss.backward()
        optimiser.step()
        steps += 1
        losses.append(loss.detach())
        if steps % 500 == 0:
            print(f"step {steps} loss {torch.stack(losses[-500:]).mean().item():.4f}", flush=True)
    print(f"seed {seed}: {steps} steps", flush=True)
    return {
        **start,
        **{name: value.detach().float().cpu() for name, value in optimiser.state().items()},
    }


def _answers_loss(
    reader: Reranker, texts: Texts, lessons: Lessons, chance: np.random.Generator
) -> Tensor:
    lists = list(lessons.answers(chance))
    rows = torch.as_tensor(np.repeat(np.arange(len(lists)), [len(one[1]) for one in lists])).to(
        DEVICE
    )
    queries = np.repeat([one[0] for one in lists], [len(one[1]) for one in lists])
    read, likely, weights = (np.concatenate([one[place] for one in lists]) for place in (1, 2, 3))
    scores, label = scored(reader, texts, queries, read).float(), _tensor(likely)
    pointwise = _tensor(weights) * functional.binary_cross_entropy_with_logits(
        scores, label, reduction="none"
    )
    top = scores.max().detach()
    total = (
        torch.zeros(len(lists), device=DEVICE).index_add(0, rows, (scores - top).exp()).log() + top
    )
    answered = torch.zeros(len(lists), device=DEVICE).index_add(0, rows, label)
    listwise = label / answered[rows].clamp(min=1) * (total[rows] - scores)
    return (pointwise.sum() + listwise.sum()) / len(lists)


def _changes_loss(
    reader: Reranker, texts: Texts, lessons: Lessons, chance: np.random.Generator
) -> Tensor:
    new, old, likely, weights = lessons.changes(chance)
    scores = scored(reader, texts, new, old).float()
    losses = functional.binary_cross_entropy_with_logits(scores, _tensor(likely), reduction="none")
    return (_tensor(weights) * losses).sum() / float(weights.sum())


def _tensor(values: np.ndarray) -> Tensor:
    return torch.as_tensor(values.astype(np.float32)).to(DEVICE)


@torch.no_grad()
def checked(state: State, texts: Texts, arrays: Arrays, task: str) -> np.ndarray:
    """Score pairs that neither reader nor teacher was trained on."""
    reader = ready(Reranker(shape_of(state)), state, DEVICE)
    rows = arrays["candidates"]
    pair = (
        (rows[:, 2], rows[:, 3])
        if task == "answers"
        else (arrays["check_new"], arrays["check_old"])
    )
    return np.asarray(scored(reader, texts, *pair).float().cpu().numpy())


def _seeds(options: argparse.Namespace) -> range:
    return range(options.first_seed, options.first_seed + options.seeds)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("task", choices=("answers", "changes"))
    parser.add_argument("packed", type=Path)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument(
        "--words", type=Path, help="a reranker with the word table that the model's file lacks"
    )
    parser.add_argument(
        "--teacher",
        type=Path,
        help="folder of large_teacher.py, in addition to the packed scores",
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--seconds", type=float, default=500.0, help="of each seed")
    parser.add_argument("--seeds", type=int, default=1, help="number of models to average")
    parser.add_argument(
        "--first-seed", type=int, default=0, help="several runs side by side take others"
    )
    parser.add_argument("--rate", type=float)
    return parser.parse_args()


if __name__ == "__main__":
    main()
