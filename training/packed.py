"""Read pack_pairs.py's data: texts as tokens of teacher and readers, lists, and change pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

ANSWERS, CHANGES = 0, 1
TASKS = ("answers", "changes")
# What a model writes about a note, after people's examples.
KINDS = ("asked", "near", "update", "other", "sibling")
# The teacher reads this much of each of two texts.
TOKENS_A_TEXT = 200
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"

Arrays = Mapping[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class Pair:
    """Answers: memory, then question. Changes: earlier, then later."""

    task: int
    first: int
    second: int


class Material:
    """The pairs, and the texts as the teacher's tokens if it is included."""

    def __init__(self, arrays: Arrays) -> None:
        self.arrays = arrays
        self.starts = np.concatenate([[0], np.cumsum(arrays["list_length"])[:-1]])
        self.own, self.general = (
            np.flatnonzero(arrays["list_general"] == kind) for kind in (False, True)
        )
        kinds = arrays["train_kind"]
        self.pairs, self.neighbours = np.flatnonzero(kinds == 0), np.flatnonzero(kinds > 0)

    @cached_property
    def lengths(self) -> np.ndarray:
        lengths: np.ndarray = np.minimum(self.arrays["teacher_lengths"].astype(int), TOKENS_A_TEXT)
        return lengths

    @cached_property
    def _frames(self) -> list[list[np.ndarray]]:
        places = ("before", "between", "behind")
        return [[self.arrays[f"prompt_{task}_{place}"] for place in places] for task in TASKS]

    def tokens(self, pair: Pair) -> np.ndarray:
        before, between, behind = self._frames[pair.task]
        return np.concatenate(
            [before, self.text(pair.first), between, self.text(pair.second), behind]
        )

    def text(self, number: int) -> np.ndarray:
        start = self.arrays["teacher_starts"][number]
        return self.arrays["teacher_ids"][start : start + self.lengths[number]]

    def batch(self, pairs: Sequence[Pair]) -> tuple[Tensor, Tensor, Tensor]:
        each = [self.tokens(pair) for pair in pairs]
        lengths = np.array([len(one) for one in each])
        ids = np.zeros((len(each), -(-lengths.max() // 16) * 16), np.int64)
        for row, one in zip(ids, each, strict=True):
            row[: len(one)] = one
        tasks = [pair.task for pair in pairs]
        return tuple(torch.as_tensor(one).to(DEVICE) for one in (ids, lengths - 1, np.array(tasks)))

    def written(self, *kinds: str) -> tuple[np.ndarray, np.ndarray]:
        """Return notes and what the model wrote about them (model_written.py), if anything."""
        if "written_kind" not in self.arrays:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        inside = np.isin(self.arrays["written_kind"], [KINDS.index(kind) for kind in kinds])
        return self.arrays["written_note"][inside], self.arrays["written_text"][inside]

    def list_of(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        inside = slice(
            self.starts[number], self.starts[number] + self.arrays["list_length"][number]
        )
        return self.arrays["list_text"][inside], self.arrays["list_label"][inside]


def figures(scores: np.ndarray, arrays: Arrays) -> dict[str, float]:
    """Return area and precision-recall meeting point, for written pairs and in stores."""
    truth, found = arrays["check_update"] > 0, {}
    for name, inside in (
        ("written", arrays["check_kind"] == 0),
        ("in stores", arrays["check_kind"] < 2),
    ):
        found[f"area {name}"] = area(scores[inside], truth[inside])
        found[f"meet {name}"] = meet(scores[inside], truth[inside])
    return found


def meet(scores: np.ndarray, truth: np.ndarray) -> float:
    """Return recall and precision where as many are named as exist."""
    hits = np.cumsum(truth[np.argsort(-scores)])
    return round(float(hits[truth.sum() - 1] / truth.sum()), 3)


def area(scores: np.ndarray, truth: np.ndarray) -> float:
    ranks = np.argsort(np.argsort(scores)) + 1
    updates, others = truth.sum(), (~truth).sum()
    return round(float((ranks[truth].sum() - updates * (updates + 1) / 2) / (updates * others)), 3)
