"""Test whether the vectors of two names tell that they mean the same, on labeled pairs.

python benchmarks/studies/name_pairs.py

Reads tests/unit/memory/triples/name_pairs.tsv and writes docs/results/name_pairs.json: precision
and recall over thresholds, for vectors only and for pairs that no rule of
trivet.memory.worker.triple_prompt separates. Hard pairs were chosen and labeled by hand, and rules
and thresholds were tuned on them, so this is not a held-out measurement. It can only show that
vectors alone do not decide. Nearness is relative to a model's background; all-MiniLM-L6-v2 has none
measured, so its plain cosine is used. The thresholds in force were chosen for the first model.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from embedder import MINILM, SHIPPED, identity

from trivet.graph.concepts import canonical
from trivet.lab.measure.run import environment
from trivet.memory.worker.triple_prompt import (
    DIFFERENT_NAME_NEARNESS,
    SAME_NAME_NEARNESS,
    may_be_same_name,
    words_of,
)
from trivet.models.embed import load
from trivet.models.embed.base import similarity_baseline_of

ROOT = Path(__file__).parents[2]
PAIRS = ROOT / "tests" / "unit" / "memory" / "triples" / "name_pairs.tsv"
OUTPUT = ROOT / "docs" / "results" / "name_pairs.json"
THRESHOLDS = sorted(
    {round(0.5 + 0.01 * step, 2) for step in range(50)}
    | {SAME_NAME_NEARNESS, DIFFERENT_NAME_NEARNESS}
)
SHOWN = 12


class Pair(msgspec.Struct, frozen=True):
    same: bool
    kind: str
    first: str
    second: str
    nearness: float

    @property
    def open(self) -> bool:
        """Neither solved by the canonical name nor ruled out."""
        return canonical(self.first) != canonical(self.second) and may_be_same_name(
            self.first, self.second
        )

    @property
    def compared(self) -> bool:
        """Return the pairs the store compares: candidates must share a word."""
        return self.open and bool(words_of(self.first) & words_of(self.second))


def read_pairs(path: Path, embedder: str) -> list[Pair]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    model = load(embedder)
    assert model is not None
    firsts, seconds = (model.embed_documents([row[end] for row in rows]) for end in ("a", "b"))
    cosines = np.sum(firsts * seconds, axis=1)
    nearness = similarity_baseline_of(model).nearness
    return [
        Pair(row["label"] == "same", row["kind"], row["a"], row["b"], nearness(float(cosine)))
        for row, cosine in zip(rows, cosines, strict=True)
    ]


def curve(pairs: Sequence[Pair], all_same: int) -> list[dict[str, Any]]:
    """Return precision's lower Wilson bound (95 %), and recall of all equal pairs."""
    rows = []
    for threshold in THRESHOLDS:
        taken = [pair.same for pair in pairs if pair.nearness >= threshold]
        right = sum(taken)
        rows.append(
            {
                "threshold": threshold,
                "taken": len(taken),
                "right": right,
                "precision": round(right / len(taken), 3) if taken else None,
                "precision_at_least": round(wilson(right, len(taken)), 3) if taken else None,
                "recall": round(right / all_same, 3),
            }
        )
    return rows


def wilson(right: int, count: int, z: float = 1.96) -> float:
    share = right / count
    middle = share + z * z / (2 * count)
    spread = z * ((share * (1 - share) + z * z / (4 * count)) / count) ** 0.5
    return float((middle - spread) / (1 + z * z / count))


def nearest_wrong(pairs: Sequence[Pair]) -> list[dict[str, Any]]:
    wrong = sorted((pair for pair in pairs if not pair.same), key=lambda pair: -pair.nearness)
    return [
        {"nearness": round(pair.nearness, 3), "pair": [pair.first, pair.second]}
        for pair in wrong[:SHOWN]
    ]


def decided(pairs: Sequence[Pair]) -> dict[str, dict[str, int]]:
    fates: dict[str, dict[str, int]] = {}
    for pair in pairs:
        fate = (
            "ruled out"
            if not pair.open
            else "no shared word"
            if not pair.compared
            else _by_vector(pair.nearness)
        )
        counts = fates.setdefault(fate, {"same": 0, "different": 0})
        counts["same" if pair.same else "different"] += 1
    return fates


def _by_vector(nearness: float) -> str:
    return (
        "merged"
        if nearness >= SAME_NAME_NEARNESS
        else "asked"
        if nearness >= DIFFERENT_NAME_NEARNESS
        else "kept apart"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, default=OUTPUT)
    parser.add_argument(
        "--embedders",
        nargs="+",
        default=[SHIPPED, MINILM],
        help="embedder whose vectors to compare",
    )
    options = parser.parse_args()
    result = {
        "manifest": environment() | {"command": "python benchmarks/studies/name_pairs.py"},
        "thresholds": {
            "same": SAME_NAME_NEARNESS,
            "different": DIFFERENT_NAME_NEARNESS,
            "of": identity(SHIPPED),
        },
        "embedders": {identity(one): measured(read_pairs(PAIRS, one)) for one in options.embedders},
    }
    options.output.write_text(
        json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8"
    )


def measured(pairs: Sequence[Pair]) -> dict[str, Any]:
    same = sum(pair.same for pair in pairs)
    compared = [pair for pair in pairs if pair.compared]
    return {
        "pairs": {"same": same, "different": len(pairs) - same},
        "fates": decided(pairs),
        "vectors_alone": curve(pairs, same),
        "after_the_rules": curve(compared, same),
        "nearest_different_by_vectors_alone": nearest_wrong(pairs),
        "nearest_different_after_the_rules": nearest_wrong(compared),
    }


if __name__ == "__main__":
    main()
