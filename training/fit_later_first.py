"""Fit when recall puts a later hit before an earlier one above it, and write the model with its manifest.

    python training/fit_later_first.py --pairs changes.json.xz --written training/changes/*.jsonl --scores scores.npz \
        --others training/lives/*/corpus.jsonl --output src/trivet/memory/answer/later.json

Each pair is stored among other memories and its question is asked. True updates are to be lifted; look-alikes, of which
the earlier is asked for, are not. The verdicts come from the product, the reader's part in them from a reader that did
not see the pair (`--scores`). Figures are of pairs that the model did not see.
"""

from __future__ import annotations

import argparse
import json
import lzma
import random
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fit_changes import Rows, chances, fit
from trivet import Trivet
from trivet.analyse import Question
from trivet.memory import recall
from trivet.memory.answer.currency import Likely, Pair, beside_features
from trivet.memory.answer.decision import Scored
from trivet.memory.changes import verdict
from trivet.memory.changes.reader import read

OTHERS, PAIRS, FOLDS = 60, 700, 8
LIFTED, BROUGHT = 0.4, 0.75
EARLIER, LATER = "2026-03-01T09:00:00Z", "2026-09-01T09:00:00Z"

Found = tuple[dict[str, float], bool, str]


class Kept:
    """What the last recall had before the later was put first."""

    def __init__(self) -> None:
        self.question: Question | None = None
        self.hits: Sequence[Scored] = ()
        self.likely: Likely | None = None

    def __call__(self, _: Any, question: Question, hits: Sequence[Scored], *rest: Any, **__: Any) -> Sequence[Scored]:
        self.question, self.hits, self.likely = question, hits, rest[2]
        return hits


def features_of(memory: Trivet, kept: Kept, pair: Mapping[str, Any]) -> tuple[dict[str, float] | None, str]:
    """None where the order would not be touched, and why."""
    texts = [{"content": pair[side], "created_at": at} for side, at in (("old", EARLIER), ("new", LATER))]
    made = [memory.remember_many([text])[0].id for text in texts]
    memory.drain()
    old, new = made
    try:
        memory.recall(pair["question"], limit=10, relevance_at_least=0.0, rerank="off")
        places = {hit.memory.id: place for place, hit in enumerate(kept.hits[:12])}
        rows = memory.engine.store.likely_updates.of_older([old])
        chance = next((row.probability for row in rows if row.newer == new), None)
        if old not in places:
            return None, "the old is not found"
        if chance is None:
            return None, "no row"
        if new not in places:
            return None, f"the new is not found {int(chance >= BROUGHT)}"
        if places[new] < places[old]:
            return None, "in order"
        earlier, later = kept.hits[places[old]], kept.hits[places[new]]
        assert kept.question is not None
        assert kept.likely is not None
        distance = places[new] - places[old]
        both = Pair(later.memory, earlier.memory, chance)
        return beside_features(kept.question, both, earlier, later, distance, kept.likely), "out of order"
    finally:
        for id in made:
            memory.purge(id)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--written", nargs="+", type=Path, required=True)
    parser.add_argument("--scores", type=Path, required=True)
    parser.add_argument("--others", nargs="+", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    with lzma.open(options.pairs, "rt", encoding="utf-8") as file:
        lines = json.load(file)["train"]
    scores = np.load(options.scores)["train"]
    unseen = {(line["new"], line["old"]): float(score) for line, score in zip(lines, scores, strict=True)}

    def fairly(new: str, olds: Sequence[str]) -> list[float]:
        return [unseen[new, old] if (new, old) in unseen else read(new, [old])[0] for old in olds]

    setattr(verdict, "read", fairly)  # noqa: B010
    kept = Kept()
    setattr(recall, "later_first", kept)  # noqa: B010
    pairs = [json.loads(line) for path in options.written for line in path.read_text(encoding="utf-8").splitlines()]
    pairs = random.Random(2).sample([pair for pair in pairs if pair.get("question")], PAIRS)
    others = [
        json.loads(line)["text"] for path in options.others for line in path.read_text(encoding="utf-8").splitlines()
    ]
    found: list[Found] = []
    why: dict[str, int] = {}
    with tempfile.TemporaryDirectory() as scratch, Trivet.open(f"{scratch}/m.db", background=False) as memory:
        memory.remember_many(
            {"content": text, "created_at": EARLIER} for text in random.Random(1).sample(others, OTHERS)
        )
        memory.drain()
        for number, pair in enumerate(pairs):
            features, reason = features_of(memory, kept, pair)
            name = f"{'update' if pair['update'] else 'look-alike'}: {reason}"
            why[name] = why.get(name, 0) + 1
            if features is not None:
                found.append((features, bool(pair["update"]), f"pair {number}"))
            if number % 100 == 99:
                print(number + 1, why, flush=True)
    _write(options.output, found, why)


def _write(output: Path, found: Sequence[Found], why: Mapping[str, int]) -> None:
    names = tuple(found[0][0])
    values = np.array([[features[name] for name in names] for features, _, _ in found])
    label = np.array([update for _, update, _ in found])
    rows = Rows(names, values, label, np.arange(len(found)), np.ones(len(found), bool))
    fold = np.random.default_rng(1).permutation(len(found)) % FOLDS
    chance = np.zeros(len(found))
    for left_out in range(FOLDS):
        test = fold == left_out
        chance[test] = chances(rows, *fit(rows, ~test))[test]
    weights, bias = fit(rows, np.ones(len(found), bool))
    for threshold in np.arange(0.2, 0.8, 0.1):
        print(f"{threshold:.1f}", _told(chance, label, float(threshold)))
    manifest = {
        "pairs": sum(why.values()),
        "cases": dict(sorted(why.items())),
        "not seen": _told(chance, label, LIFTED),
    }
    model = {
        "model": {
            "bias": round(bias, 4),
            "weights": {name: round(float(weight), 4) for name, weight in zip(names, weights, strict=True)},
        },
        "lifted": LIFTED,
        "brought": BROUGHT,
        "manifest": manifest,
    }
    output.write_text(json.dumps(model, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(model, indent=1))


def _told(chance: Any, label: Any, threshold: float) -> dict[str, float]:
    lifted = chance >= threshold
    return {
        "updates lifted": round(float(lifted[label].mean()), 3),
        "look-alikes lifted": round(float(lifted[~label].mean()), 3),
    }


if __name__ == "__main__":
    main()
