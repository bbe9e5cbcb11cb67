"""Fit the models of relevance on dumped features, judged with each corpus left out, and write them.

    python training/fit_relevance.py --bundled bundled.npz --stock stock.npz --output relevance.json

Logistic regression over standardised features; of each query the first ten candidates count. A corpus' queries weigh as
much as another's, and answerable ones together as much as unanswerable ones: the probabilities hold for such a mix.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trivet.lab.calibration import expected_calibration_error, refused, threshold_keeping
from trivet.search.relevance.features import feature_names

Numbers = NDArray[np.float64]

SHOWN = 10
RIDGE = 3.0
# Reported is what is refused with 90 % of the answerable kept. Shipped is a kinder threshold: to keep back what is
# there costs more than to show what does not help.
SHIPPED_KEPT = 0.95
STEPS = 30
ANSWERABLE = ("own", "small")
UNANSWERABLE = ("foreign", "scope", "absent")
COSINES = ("dense", "dense_top")
TUNED, STOCK = "trivet-embedder", "all-MiniLM-L6-v2"
# Beyond these quantiles of the training data a feature is clipped.
RANGE = (0.002, 0.998)


@dataclass(frozen=True)
class Dump:
    values: Numbers
    label: NDArray[np.bool_]
    query: NDArray[np.int64]
    corpus: NDArray[np.str_]
    kind: NDArray[np.str_]
    origin: NDArray[np.str_]  # the corpus whose question it is

    def rows(self, queries: NDArray[np.bool_]) -> NDArray[np.bool_]:
        found: NDArray[np.bool_] = queries[self.query]
        return found


@dataclass(frozen=True)
class Fitted:
    weights: Numbers
    bias: float
    least: Numbers
    most: Numbers

    def probabilities(self, values: Numbers) -> Numbers:
        odds = np.clip(values, self.least, self.most) @ self.weights + self.bias
        found: Numbers = 1.0 / (1.0 + np.exp(-odds))
        return found


def load(path: Path, names: tuple[str, ...], recipe: str) -> Dump:
    """The first candidates of each query that was asked with all legs, or by words alone."""
    with np.load(path) as arrays:
        columns = [[str(name) for name in arrays["names"]].index(name) for name in names]
        values, query = arrays["features"][:, columns].astype(np.float64), arrays["query"].astype(np.int64)
        label, corpus, kind = arrays["label"] > 0, arrays["corpus"], arrays["kind"]
        asked = arrays["recipe"] == recipe
    _, starts, counts = np.unique(query, return_index=True, return_counts=True)
    place = np.arange(len(query)) - np.repeat(starts, counts)
    kept = (place < SHOWN) & asked[query]
    corpora = np.array([str(name).partition("-")[0] for name in corpus])
    # Queries that were asked otherwise keep their number and have no rows; their kind keeps them out of every count.
    return Dump(values[kept], label[kept], query[kept], corpora, np.where(asked, kind, "asked otherwise"), corpora)


def trained_on(dump: Dump, left_out: str | None) -> NDArray[np.bool_]:
    """Not even as a question that others cannot answer may a query of the corpus be seen that is left out."""
    found: NDArray[np.bool_] = (dump.corpus != (left_out or "")) & (dump.origin != (left_out or ""))
    return found


def fit(dump: Dump, queries: NDArray[np.bool_]) -> Fitted:
    rows = dump.rows(queries)
    values, label = dump.values[rows], dump.label[rows].astype(np.float64)
    least, most = np.quantile(values, RANGE, axis=0)
    clipped = np.clip(values, least, most)
    mean, deviation = clipped.mean(axis=0), clipped.std(axis=0) + 1e-9
    weights, bias = _logistic((clipped - mean) / deviation, label, _row_weights(dump, queries)[rows])
    weights = weights / deviation
    return Fitted(weights, float(bias - mean @ weights), least, most)


def _row_weights(dump: Dump, queries: NDArray[np.bool_]) -> Numbers:
    """Each corpus and, within it, answerable and unanswerable queries weigh the same."""
    weight = np.zeros(len(dump.kind))
    for corpus in np.unique(dump.corpus[queries]):
        for kinds in (ANSWERABLE, UNANSWERABLE):
            group = queries & (dump.corpus == corpus) & np.isin(dump.kind, kinds)
            weight[group] = 1.0 / max(1, group.sum())
    rows: Numbers = weight[dump.query]
    return np.asarray(rows / rows[dump.rows(queries)].mean())


def _logistic(values: Numbers, label: Numbers, weight: Numbers) -> tuple[Numbers, float]:
    """Newton's method with a ridge on all but the bias."""
    design = np.hstack([values, np.ones((len(values), 1))])
    ridge = np.diag([RIDGE] * values.shape[1] + [0.0])
    found = np.zeros(design.shape[1])
    for _ in range(STEPS):
        chance = 1.0 / (1.0 + np.exp(-design @ found))
        gradient = design.T @ (weight * (label - chance)) - ridge @ found
        curvature = (design * (weight * chance * (1 - chance))[:, None]).T @ design + ridge
        step = np.linalg.solve(curvature, gradient)
        found += step
        if np.abs(step).max() < 1e-8:
            break
    return found[:-1], float(found[-1])


def best_by_query(dump: Dump, probabilities: Numbers) -> Numbers:
    best = np.zeros(len(dump.kind))
    np.maximum.at(best, dump.query, probabilities)
    return best


def judged(dump: Dump) -> dict[str, Any]:
    """Each corpus by a model that never saw it; the threshold too comes from the others."""
    results: dict[str, Any] = {}
    for corpus in sorted(set(dump.corpus)):
        model = fit(dump, trained_on(dump, corpus))
        probabilities = model.probabilities(dump.values)
        best = best_by_query(dump, probabilities)
        others, own = dump.corpus != corpus, dump.corpus == corpus
        threshold = threshold_keeping([*best[others & (dump.kind == "own")]])
        itself = threshold_keeping([*best[own & (dump.kind == "own")]])
        mixed = dump.rows(own & np.isin(dump.kind, ("own", "foreign")))
        results[corpus] = {
            "calibration_error": expected_calibration_error([*probabilities[mixed]], [*dump.label[mixed]]),
            "kept": 1 - refused([*best[own & (dump.kind == "own")]], threshold),
            "refused": {
                kind: {
                    "threshold_of_others": refused([*best[own & (dump.kind == kind)]], threshold),
                    "at_90_kept": refused([*best[own & (dump.kind == kind)]], itself),
                }
                for kind in UNANSWERABLE
                if (own & (dump.kind == kind)).any()
            },
        }
    return results


def described(model: Fitted, names: tuple[str, ...]) -> dict[str, Any]:
    columns = zip(names, model.weights, model.least, model.most, strict=True)
    features = {
        name: {"weight": round(float(weight), 6), "least": round(float(least), 6), "most": round(float(most), 6)}
        for name, weight, least, most in columns
    }
    return {"bias": round(model.bias, 6), "features": features}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bundled", type=Path, required=True, help="a file of dump_features.py --embedder bundled")
    parser.add_argument("--stock", type=Path, required=True, help="a file of dump_features.py --embedder stock")
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--results", type=Path)
    options = parser.parse_args()
    features = feature_names()
    blind = tuple(name for name in features if name not in COSINES)
    worded = tuple(name for name in features if not name.startswith(("dense", "graph", "legs")))
    dumps = {
        TUNED: (load(options.bundled, features, "all"), features),
        STOCK: (load(options.stock, features, "all"), features),
        "other": (load(options.bundled, blind, "all"), blind),
        "words": (load(options.bundled, worded, "lexical"), worded),
    }
    models: dict[str, dict[str, Any]] = {}
    report: dict[str, Any] = {}
    thresholds: dict[str, float] = {}
    for name, (dump, names) in dumps.items():
        model = fit(dump, trained_on(dump, None))
        models[name] = described(model, names)
        report[name] = judged(dump)
        best = best_by_query(dump, model.probabilities(dump.values))
        thresholds[name] = round(threshold_keeping([*best[dump.kind == "own"]], SHIPPED_KEPT), 4)
        _show(f"{name}, threshold {thresholds[name]}", report[name])
    text = json.dumps(
        {
            "embedders": {name: models[name] for name in (TUNED, STOCK)},
            "other": models["other"],
            "words": models["words"],
            "threshold": min(thresholds[name] for name in (TUNED, STOCK)),
            "manifest": _manifest(options, thresholds),
        },
        indent=1,
    )
    options.output.write_text(text + "\n", encoding="utf-8")
    if options.results:
        options.results.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


def _manifest(options: argparse.Namespace, thresholds: dict[str, float]) -> dict[str, Any]:
    files = (options.bundled, options.stock)
    return {
        "made_by": "training/fit_relevance.py",
        "sha256": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
        "keeping_19_of_20": thresholds,
        "mix": "as many answerable as unanswerable queries, corpora weighing the same",
    }


def _show(name: str, results: dict[str, Any]) -> None:
    print(name)
    for corpus, found in results.items():
        told = ", ".join(
            f"{kind} {shares['threshold_of_others']:.2f} ({shares['at_90_kept']:.2f})"
            for kind, shares in found["refused"].items()
        )
        print(f"  {corpus:10} ECE {found['calibration_error']:.3f}, kept {found['kept']:.2f}, refused: {told}")


if __name__ == "__main__":
    main()
