"""Fit the model that says whether a newer statement may update an older one, and write it with its manifest.

    python training/fit_changes.py --pairs training/changes.jsonl MORE.jsonl --others STORES/*/memories.jsonl \
        --output src/trivet/memory/changes/changes.json

Logistic regression with a ridge over the features of `trivet.memory.changes`, one model for each bundled embedder and
one without cosines. A pair's new text is also set against its nearest neighbours among other memories, which are no
updates. All figures of the manifest are of pairs that the model did not see: ten folds, five times.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trivet.memory.changes.contrast import contrast
from trivet.memory.changes.statement import statement
from trivet.memory.changes.verdict import of_cosine
from trivet.models.embed.registry import load

Numbers = NDArray[np.float64]

RIDGE = 6.0
STEPS = 40
FOLDS, REPEATS = 10, 5
# Of so many other memories in a store, the nearest are compared on save; each weighs a part of a written pair.
STORE, NEAREST, NEIGHBOUR_WEIGHT = 60, 8, 0.2
# From this probability on an update is told: there recall and precision meet on everyday pairs that were not seen.
TOLD = 0.45
EMBEDDERS = ("bundled", "stock")


@dataclass(frozen=True)
class Rows:
    """A row a comparison. `pair` is the written pair that it belongs to."""

    names: tuple[str, ...]
    values: Numbers
    label: NDArray[np.bool_]
    pair: NDArray[np.int64]
    written: NDArray[np.bool_]

    def without(self, prefix: str) -> Rows:
        kept = [place for place, name in enumerate(self.names) if not name.startswith(prefix)]
        names = tuple(self.names[place] for place in kept)
        return Rows(names, self.values[:, kept], self.label, self.pair, self.written)


def rows_of(pairs: Sequence[Mapping[str, Any]], others: Sequence[str], embedder: str) -> tuple[Rows, str]:
    model = load(embedder)
    assert model is not None
    texts = sorted({pair[side] for pair in pairs for side in ("old", "new")} | set(others))
    vectors = dict(zip(texts, model.embed_documents(texts), strict=True))
    random = np.random.default_rng(1)
    found: list[tuple[dict[str, float], bool, int, bool]] = []
    for number, pair in enumerate(pairs):
        store = random.choice(others, min(STORE, len(others)), replace=False).tolist()
        store.sort(key=lambda text: -float(vectors[text] @ vectors[pair["new"]]))
        for old, label in [(pair["old"], bool(pair["update"])), *((text, False) for text in store[:NEAREST])]:
            cosine = float(vectors[old] @ vectors[pair["new"]])
            features = {**contrast(statement(pair["new"]), statement(old)).features, **of_cosine(cosine)}
            found.append((features, label, number, old == pair["old"]))
    names = tuple(found[0][0])
    values = np.array([[features[name] for name in names] for features, *_ in found])
    labels, numbers, written = (np.array([row[place] for row in found]) for place in (1, 2, 3))
    return Rows(names, values, labels, numbers, written), model.identity.partition("/")[0]


def fit(rows: Rows, seen: NDArray[np.bool_]) -> tuple[Numbers, float]:
    """Newton's method over standardised features, with a ridge on all but the bias."""
    values, label = rows.values[seen], rows.label[seen].astype(np.float64)
    weight = np.where(rows.written[seen], 1.0, NEIGHBOUR_WEIGHT)
    mean, deviation = values.mean(axis=0), values.std(axis=0) + 1e-9
    design = np.hstack([(values - mean) / deviation, np.ones((len(values), 1))])
    ridge = np.diag([RIDGE] * values.shape[1] + [0.0])
    found = np.zeros(design.shape[1])
    for _ in range(STEPS):
        chance = 1.0 / (1.0 + np.exp(-design @ found))
        gradient = design.T @ (weight * (label - chance)) - ridge @ found
        curvature = (design * (weight * chance * (1 - chance))[:, None]).T @ design + ridge
        found += np.linalg.solve(curvature, gradient)
    weights: Numbers = found[:-1] / deviation
    return weights, float(found[-1] - mean @ weights)


def unseen(rows: Rows) -> Numbers:
    """For each row its probability by models that saw nothing of its pair."""
    chances = np.zeros(len(rows.label))
    pairs = int(rows.pair.max()) + 1
    for repeat in range(REPEATS):
        fold = np.random.default_rng(repeat).permutation(pairs) % FOLDS
        for left_out in range(FOLDS):
            test = fold[rows.pair] == left_out
            weights, bias = fit(rows, ~test)
            chances[test] += 1.0 / (1.0 + np.exp(-(rows.values[test] @ weights + bias)))
    return chances / REPEATS


def noticed(rows: Rows, chances: Numbers, told: float) -> dict[str, float]:
    said, true = chances >= told, rows.label & rows.written
    hits = int((said & true).sum())
    return {"recall": round(hits / int(true.sum()), 3), "precision": round(hits / max(1, int(said.sum())), 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", nargs="+", type=Path, required=True)
    parser.add_argument("--others", nargs="+", type=Path, required=True, help="memories.jsonl of other stores")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    pairs = [json.loads(line) for path in options.pairs for line in path.read_text(encoding="utf-8").splitlines()]
    lines = [line for path in sorted(options.others) for line in path.read_text(encoding="utf-8").splitlines()]
    others = sorted({json.loads(line)["content"] for line in lines})
    models, figures = {}, {}
    for embedder in EMBEDDERS:
        rows, identity = rows_of(pairs, others, embedder)
        chances = unseen(rows)
        models[identity], figures[identity] = _linear(rows), noticed(rows, chances, TOLD)
    words = rows.without("cosine")
    chances = unseen(words)
    figures["words"] = noticed(words, chances, TOLD)
    manifest = {
        "pairs": len(pairs),
        "updates": sum(bool(pair["update"]) for pair in pairs),
        "others": len(others),
        "sha256": [hashlib.sha256(path.read_bytes()).hexdigest()[:16] for path in options.pairs],
        "ridge": RIDGE,
        "on pairs not seen": figures,
    }
    written = {
        "embedders": models, "words": _linear(words), "told": TOLD, "manifest": manifest
    }  # fmt: skip
    options.output.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({"told": TOLD, **manifest}, indent=1))


def _linear(rows: Rows) -> dict[str, Any]:
    weights, bias = fit(rows, np.ones(len(rows.label), bool))
    named = {name: round(float(weight), 4) for name, weight in zip(rows.names, weights, strict=True)}
    return {"bias": round(bias, 4), "weights": named}


if __name__ == "__main__":
    main()
