r"""Fit the model of whether a newer statement may update an older one, with its manifest.

python training/fit_changes.py --pairs changes.json.xz --scores scores.npz \
    --output src/trivet/memory/changes/changes.json

Pairs are from change_pairs.py, scores from score_changes.py; the shipped reader did not see them. A
ridge logistic regression over the features of `trivet.memory.supersession` gives the first sight,
for each bundled embedder and without vectors; three more numbers combine it with the reader's
score. Neighbors of new texts count as non-updates with little weight. The manifest reports results
on unseen pairs, by five folds twice and on `check`: for everyday pairs only, half of which are
updates, and for whole stores.

`--sight changes.json` keeps that file's first sight and refits only the combination with the
reader. The shipped file was made this way: a first sight from 2,243 pairs alone separates
look-alikes from updates better (area .86 on `check`) than one from 5,447 pairs and their neighbors
(.82).
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

from trivet.memory.supersession.compare import MIN_NEARNESS
from trivet.memory.supersession.verdict import READ, SEEN, OlderText, features_of, nearness_features
from trivet.models.embed.base import similarity_baseline_of
from trivet.models.embed.registry import load

Numbers = NDArray[np.float64]

RIDGE = 6.0
RIDGE_OF_TWO = 0.5
STEPS = 40
FOLDS, REPEATS = 5, 2
# Neighbors are many and easy. The reader's three numbers use everyday pairs only: the probability
# is that of a plausible update.
STORE_WEIGHT, NEIGHBOUR_WEIGHT = 0.05, 0.05
# Pairs below the first-sight score of this share of the checked updates are not read.
UPDATES_UNREAD = 0.02
# The shipped embedder, and all-MiniLM-L6-v2, which a user may have in a folder.
EMBEDDERS = ("bundled", f"folder:{Path(__file__).parents[1] / 'tests' / 'models' / 'minilm'}")


@dataclass(frozen=True)
class Rows:
    """A row per comparison. Folds keep `group` together; rows of `inside` share a store.

    A row that is not `near` is not compared on save, so an update there is missed.
    """

    names: tuple[str, ...]
    values: Numbers
    label: NDArray[np.bool_]
    group: NDArray[np.int64]
    written: NDArray[np.bool_]
    inside: NDArray[np.bool_]
    near: NDArray[np.bool_]

    def without(self, prefix: str) -> Rows:
        kept = [place for place, name in enumerate(self.names) if not name.startswith(prefix)]
        return replace(
            self, names=tuple(self.names[place] for place in kept), values=self.values[:, kept]
        )

    def part(self, which: slice) -> Rows:
        columns = {
            name: getattr(self, name)[which]
            for name in ("values", "label", "group", "written", "inside", "near")
        }
        return replace(self, **columns)


def contrasts(lines: Sequence[dict[str, Any]]) -> list[dict[str, float]]:
    return [features_of(line["new"], OlderText(line["old"]))[1] for line in lines]


def nearness(lines: Sequence[dict[str, Any]], embedder: str) -> Numbers:
    model = load(embedder)
    assert model is not None
    texts = sorted({line[side] for line in lines for side in ("old", "new")})
    vectors = dict(zip(texts, np.asarray(model.embed_documents(texts)), strict=True))
    background = similarity_baseline_of(model)
    return np.array(
        [background.nearness(float(vectors[line["old"]] @ vectors[line["new"]])) for line in lines]
    )


def rows_of(
    lines: Sequence[dict[str, Any]],
    contrasted: Sequence[dict[str, float]],
    alike: Numbers,
    near: NDArray[np.bool_],
) -> Rows:
    """`alike` holds the vectors' cosines."""
    numbers: dict[str, int] = {}
    found = [
        {**features, **nearness_features(how_near)}
        for features, how_near in zip(contrasted, alike.tolist(), strict=True)
    ]
    names = tuple(found[0])
    values = np.array([[features[name] for name in names] for features in found])
    label, written, store = (
        np.array([line[name] for line in lines]) for name in ("update", "written", "store")
    )
    group = np.array([numbers.setdefault(line["group"], len(numbers)) for line in lines])
    return Rows(names, values, label, group, written, written | store, near)


def fit(
    rows: Rows, seen: NDArray[np.bool_], strength: float = RIDGE, store_weight: float = STORE_WEIGHT
) -> tuple[Numbers, float]:
    """Fit by Newton's method on standardized features, with a ridge on all but the bias."""
    seen = seen & (rows.near | rows.written)
    values, label = rows.values[seen], rows.label[seen].astype(np.float64)
    weight = np.where(
        rows.written[seen], 1.0, np.where(rows.inside[seen], store_weight, NEIGHBOUR_WEIGHT)
    )
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


def unseen(rows: Rows, strength: float = RIDGE, store_weight: float = STORE_WEIGHT) -> Numbers:
    """Return each row's probability by models that saw nothing of its store."""
    total = np.zeros(len(rows.label))
    groups = int(rows.group.max()) + 1
    for repeat in range(REPEATS):
        fold = np.random.default_rng(repeat).permutation(groups) % FOLDS
        for left_out in range(FOLDS):
            test = fold[rows.group] == left_out
            total[test] += chances(rows, *fit(rows, ~test, strength, store_weight))[test]
    return total / REPEATS


def noticed(rows: Rows, found: Numbers, told: float) -> dict[str, dict[str, float]]:
    found = found * rows.near
    return {
        "everyday pairs": _noticed(found[rows.written], rows.label[rows.written], told),
        "whole stores": _noticed(found[rows.inside], rows.label[rows.inside], told),
    }


def _noticed(found: Numbers, label: NDArray[np.bool_], told: float) -> dict[str, float]:
    said = found >= told
    hits = int((said & label).sum())
    return {
        "told from": told,
        "recall": round(hits / int(label.sum()), 3),
        "precision": round(hits / max(1, int(said.sum())), 3),
        "area": round(area(found, label), 3),
    }


def meeting(rows: Rows, found: Numbers) -> float:
    """Return the threshold at which recall and precision of everyday pairs meet."""
    told = np.sort((found * rows.near)[rows.written])[-int(rows.label[rows.written].sum())]
    return round(float(told), 2)


def area(scores: Numbers, label: NDArray[np.bool_]) -> float:
    """Return how often an update scores above a non-update."""
    ranks = np.argsort(np.argsort(scores)) + 1
    updates, others = int(label.sum()), int((~label).sum())
    return float((ranks[label].sum() - updates * (updates + 1) / 2) / (updates * others))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pairs", type=Path, required=True)
    parser.add_argument(
        "--scores", type=Path, required=True, help="`check`: by the reader that ships"
    )
    parser.add_argument(
        "--one-matter", type=float, default=MIN_NEARNESS, help="the least nearness that is compared"
    )
    parser.add_argument("--sight", type=Path, help="changes.json whose first sight to keep")
    parser.add_argument("--output", type=Path, required=True)
    options = parser.parse_args()
    with lzma.open(options.pairs, "rt", encoding="utf-8") as file:
        lines = json.load(file)
    train, check = lines["train"], lines["check"]
    said = np.load(options.scores)["check"].astype(np.float64)
    if options.sight:
        _write(options.output, _weighed_anew(options, check, said))
        return
    contrasted = contrasts([*train, *check])
    unread: dict[str, Any] = {"embedders": {}}
    figures: dict[str, Any] = {}
    for embedder in EMBEDDERS:
        alike = nearness([*train, *check], embedder)
        if embedder == EMBEDDERS[0]:
            near = alike >= options.one_matter
        rows = rows_of([*train, *check], contrasted, alike, near)
        trained, checked = rows.part(slice(len(train))), rows.part(slice(len(train), None))
        identity = str(getattr(load(embedder), "identity", embedder)).partition("/")[0]
        unread["embedders"][identity], seen = _fitted(trained, checked, figures, identity)
        if embedder == EMBEDDERS[0]:
            figures["nearness, bundled"] = _spread(rows, alike)
            read, told = _weighed(checked, seen, said, figures)
            read_from = _read_from(checked, seen)
    words = "nearness"
    unread["words"], _ = _fitted(
        trained.without(words), checked.without(words), figures, "words alone"
    )
    manifest = {
        "pairs": sum(line["written"] for line in train),
        "updates": sum(line["update"] for line in train),
        "neighbours in one store": sum(line["store"] for line in train),
        "neighbours in others": sum(not line["written"] and not line["store"] for line in train),
        "sha256": hashlib.sha256(options.pairs.read_bytes()).hexdigest()[:16],
        "ridge": RIDGE,
        "on pairs not seen": figures,
    }
    written = {
        "unread": unread,
        "read": read,
        "read_from": read_from,
        "report_from": told,
        "manifest": manifest,
    }
    _write(options.output, written)


def _weighed_anew(
    options: argparse.Namespace, check: Sequence[dict[str, Any]], said: Numbers
) -> dict[str, Any]:
    kept = json.loads(options.sight.read_text(encoding="utf-8"))
    contrasted, alike = contrasts(check), nearness(check, EMBEDDERS[0])
    rows = rows_of(check, contrasted, alike, alike >= options.one_matter)
    identity = str(getattr(load(EMBEDDERS[0]), "identity", "")).partition("/")[0]
    linear = kept["unread"]["embedders"][identity]
    seen = rows.values @ np.array([linear["weights"][name] for name in rows.names]) + linear["bias"]
    figures: dict[str, Any] = {}
    kept["read"], kept["told"] = _weighed(rows, seen, said, figures)
    kept["manifest"]["on pairs not seen"] |= figures
    kept["manifest"]["weighed with"] = hashlib.sha256(options.scores.read_bytes()).hexdigest()[:16]
    return dict(kept)


def _write(path: Path, written: dict[str, Any]) -> None:
    path.write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    print(
        json.dumps({name: value for name, value in written.items() if name != "unread"}, indent=1)
    )


def _spread(rows: Rows, alike: Numbers) -> dict[str, list[float]]:
    """Report nearness, for choosing `compare.MIN_NEARNESS`."""
    parts = {
        "updates": rows.label,
        "neighbours in one store": rows.inside & ~rows.written & ~rows.label,
    }
    return {
        name: np.quantile(alike[part], (0.02, 0.05, 0.1, 0.5, 0.9)).round(2).tolist()
        for name, part in parts.items()
    }


def _fitted(
    rows: Rows, check: Rows, figures: dict[str, Any], name: str
) -> tuple[dict[str, Any], Numbers]:
    weights, bias = fit(rows, np.ones(len(rows.label), bool))
    found, folds = chances(check, weights, bias), unseen(rows)
    told = meeting(rows, folds)
    figures[f"at first sight, {name}"] = {
        "folds": noticed(rows, folds, told),
        "check": noticed(check, found, told),
    }
    return _named(rows, weights, bias), np.log(found / (1 - found))


def _weighed(
    check: Rows, seen: Numbers, said: Numbers, figures: dict[str, Any]
) -> tuple[dict[str, Any], float]:
    """Fit three numbers that combine first sight and reader, on pairs neither was trained on.

    Also choose the probability from which an update is reported.
    """
    # Only everyday pairs are fitted; they are independent of each other.
    apart = np.arange(len(check.label))
    rows = replace(check, names=(SEEN, READ), values=np.column_stack([seen, said]), group=apart)
    weights, bias = fit(rows, np.ones(len(rows.label), bool), RIDGE_OF_TWO, store_weight=0.0)
    folds = unseen(rows, RIDGE_OF_TWO, store_weight=0.0)
    told = meeting(rows, folds)
    figures["read, folds of check"] = noticed(rows, folds, told)
    figures["read, folds of check, by tenths"] = tenths(rows, folds)
    return _named(rows, weights, bias), told


def tenths(rows: Rows, found: Numbers) -> dict[str, str]:
    """Return the share of updates by stated probability, in whole stores."""
    tenth = np.minimum((found * 10).astype(int), 9)
    parts = (
        (number, rows.label[rows.inside & rows.near & (tenth == number)]) for number in range(10)
    )
    return {f"from .{number}": f"{int(part.sum())} of {len(part)}" for number, part in parts}


def _read_from(check: Rows, seen: Numbers) -> float:
    chance = 1.0 / (1.0 + np.exp(-seen[check.label]))
    return float(np.floor(np.quantile(chance, UPDATES_UNREAD) * 1000) / 1000)


def _named(rows: Rows, weights: Numbers, bias: float) -> dict[str, Any]:
    named = {key: round(float(weight), 4) for key, weight in zip(rows.names, weights, strict=True)}
    return {"bias": round(bias, 4), "weights": named}


if __name__ == "__main__":
    main()
