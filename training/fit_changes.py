"""Fit the model that says whether a newer statement may update an older one, and write it with its manifest.

    python training/fit_changes.py --pairs changes.json.xz --scores scores-reranker-6.npz \
        --output src/trivet/memory/changes/changes.json

The pairs are those of change_pairs.py, the scores those of changes_reader.py, each by a reader that did not see it.
Logistic regression with a ridge over the features of `trivet.memory.changes` gives the first sight, for each bundled
embedder and without cosines; three more numbers weigh it with what the reader says. A new text is also set against its
nearest neighbours in other stores, which are no updates. The manifest tells what was noticed among pairs that neither
saw: in five folds, twice, and among those of `check`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trivet.memory.changes.verdict import READ, SEEN, Older, features_of, of_cosine
from trivet.models.embed.registry import load

Numbers = NDArray[np.float64]

RIDGE = 6.0
RIDGE_OF_TWO = 0.5
STEPS = 40
FOLDS, REPEATS = 5, 2
NEIGHBOUR_WEIGHT = 0.2
# From this probability on an update is told: there recall and precision meet on everyday pairs that were not seen.
TOLD = 0.55
# Less likely ones at first sight are not read: among them was no update of the pairs to check.
READ_FROM = 0.1
EMBEDDERS = ("bundled", "stock")


@dataclass(frozen=True)
class Rows:
    """A row a comparison. `pair` is the written pair that it belongs to."""

    names: tuple[str, ...]
    values: Numbers
    label: NDArray[np.bool_]
    pair: NDArray[np.int64]
    written: NDArray[np.bool_]

    def without(self, *prefixes: str) -> Rows:
        kept = [place for place, name in enumerate(self.names) if not name.startswith(prefixes)]
        return replace(self, names=tuple(self.names[place] for place in kept), values=self.values[:, kept])


def contrasts(lines: Sequence[dict[str, Any]]) -> list[dict[str, float]]:
    return [features_of(line["new"], Older(line["old"]))[1] for line in lines]


def cosines(lines: Sequence[dict[str, Any]], model: Any) -> list[float]:
    texts = sorted({line[side] for line in lines for side in ("old", "new")})
    vectors = dict(zip(texts, np.asarray(model.embed_documents(texts)), strict=True))
    return [float(vectors[line["old"]] @ vectors[line["new"]]) for line in lines]


def rows_of(
    lines: Sequence[dict[str, Any]], contrasted: Sequence[dict[str, float]], scores: Numbers, model: Any
) -> Rows:
    numbers: dict[str, int] = {}
    for line in lines:
        numbers.setdefault(line["new"], len(numbers))
    rows = zip(contrasted, cosines(lines, model), scores, strict=True)
    found = [{**features, **of_cosine(cosine), READ: float(score)} for features, cosine, score in rows]
    names = tuple(found[0])
    values = np.array([[features[name] for name in names] for features in found])
    label, written = (np.array([line[name] for line in lines]) for name in ("update", "written"))
    pair = np.array([numbers[line["new"]] for line in lines])
    return Rows(names, values, label, pair, written)


def fit(rows: Rows, seen: NDArray[np.bool_], strength: float = RIDGE) -> tuple[Numbers, float]:
    """Newton's method over standardised features, with a ridge on all but the bias."""
    values, label = rows.values[seen], rows.label[seen].astype(np.float64)
    weight = np.where(rows.written[seen], 1.0, NEIGHBOUR_WEIGHT)
    mean, deviation = values.mean(axis=0), values.std(axis=0) + 1e-9
    design = np.hstack([(values - mean) / deviation, np.ones((len(values), 1))])
    ridge = np.diag([strength] * values.shape[1] + [0.0])
    found = np.zeros(design.shape[1])
    for _ in range(STEPS):
        chance = 1.0 / (1.0 + np.exp(-design @ found))
        gradient = design.T @ (weight * (label - chance)) - ridge @ found
        curvature = (design * (weight * chance * (1 - chance))[:, None]).T @ design + ridge
        found += np.linalg.solve(curvature, gradient)
    weights: Numbers = found[:-1] / deviation
    return weights, float(found[-1] - mean @ weights)


def chances(rows: Rows, weights: Numbers, bias: float) -> Numbers:
    found: Numbers = 1.0 / (1.0 + np.exp(-(rows.values @ weights + bias)))
    return found


def unseen(rows: Rows, strength: float = RIDGE) -> Numbers:
    """For each row its probability by models that saw nothing of its pair."""
    total = np.zeros(len(rows.label))
    pairs = int(rows.pair.max()) + 1
    for repeat in range(REPEATS):
        fold = np.random.default_rng(repeat).permutation(pairs) % FOLDS
        for left_out in range(FOLDS):
            test = fold[rows.pair] == left_out
            total[test] += chances(rows, *fit(rows, ~test, strength))[test]
    return total / REPEATS


def noticed(rows: Rows, found: Numbers, told: float) -> dict[str, float]:
    said, true = found >= told, rows.label & rows.written
    hits = int((said & true).sum())
    return {
        "recall": round(hits / int(true.sum()), 3),
        "precision": round(hits / max(1, int(said.sum())), 3),
        "area": round(area(found[rows.written], rows.label[rows.written]), 3),
    }


def area(scores: Numbers, label: NDArray[np.bool_]) -> float:
    """How often an update has the higher score than one that is none."""
    ranks = np.argsort(np.argsort(scores)) + 1
    updates, others = int(label.sum()), int((~label).sum())
    return float((ranks[label].sum() - updates * (updates + 1) / 2) / (updates * others))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument("--scores", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    with lzma.open(options.pairs, "rt", encoding="utf-8") as file:
        lines = json.load(file)
    scores = dict(np.load(options.scores))
    unread: dict[str, Any] = {"embedders": {}}
    figures: dict[str, Any] = {}
    contrasted = {part: contrasts(lines[part]) for part in ("train", "check")}
    for embedder in EMBEDDERS:
        model = load(embedder)
        assert model is not None
        identity = model.identity.partition("/")[0]
        rows, check = (rows_of(lines[part], contrasted[part], scores[part], model) for part in ("train", "check"))
        unread["embedders"][identity], seen = _fitted(rows.without(READ), check.without(READ), figures, identity)
        if embedder == EMBEDDERS[0]:
            read = _weighed(check, seen, scores["check"], figures)
    unread["words"], _ = _fitted(rows.without("cosine", READ), check.without("cosine", READ), figures, "words alone")
    manifest = {
        "pairs": sum(line["written"] for line in lines["train"]),
        "updates": sum(line["update"] for line in lines["train"]),
        "neighbours": sum(not line["written"] for line in lines["train"]),
        "sha256": hashlib.sha256(options.pairs.read_bytes()).hexdigest()[:16],
        "ridge": RIDGE,
        "on pairs not seen": figures,
    }
    written = {"unread": unread, "read": read, "read_from": READ_FROM, "told": TOLD, "manifest": manifest}
    options.output.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    print(json.dumps({"told": TOLD, **manifest}, indent=1))


def _fitted(rows: Rows, check: Rows, figures: dict[str, Any], name: str) -> tuple[dict[str, Any], Numbers]:
    """The model at first sight, and its logits for the pairs to check."""
    weights, bias = fit(rows, np.ones(len(rows.label), bool))
    found = chances(check, weights, bias)
    figures[f"at first sight, {name}"] = {
        "folds": noticed(rows, unseen(rows), TOLD),
        "check": noticed(check, found, TOLD),
    }
    return _named(rows, weights, bias), np.log(found / (1 - found))


def _weighed(check: Rows, seen: Numbers, said: Numbers, figures: dict[str, Any]) -> dict[str, Any]:
    """How the first sight and the reader weigh: three numbers, from pairs that neither was trained on."""
    rows = replace(check, names=(SEEN, READ), values=np.column_stack([seen, said]))
    weights, bias = fit(rows, np.ones(len(rows.label), bool), RIDGE_OF_TWO)
    figures["read, folds of check"] = noticed(rows, unseen(rows, RIDGE_OF_TWO), TOLD)
    return _named(rows, weights, bias)


def _named(rows: Rows, weights: Numbers, bias: float) -> dict[str, Any]:
    named = {key: round(float(weight), 4) for key, weight in zip(rows.names, weights, strict=True)}
    return {"bias": round(bias, 4), "weights": named}


if __name__ == "__main__":
    main()
