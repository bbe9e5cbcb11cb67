r"""Fit the relevance models on dumped features and write them.

python training/fit_relevance.py --fit lives.npz pairs.npz --stock lives-stock.npz \
    --check dev.npz \
    --scores trivet-reranker-3=scores-3.npz trivet-reranker-12=scores-12.npz \
    --output relevance.json

Logistic regression over each query's first candidates. Weights of evidence are at least zero, so
that missing shared words cannot outweigh a clear cosine. Small realistic stores (training/lives)
weigh three times as much as question and passage sets. Reranker scores come from models that did
not see the store (answers.py), to avoid overtrust. `--check` chooses the threshold on stores unseen
by the rerankers. `--kept relevance.json` refits only the named rerankers' part, on the stores of
`--check`.
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
from scipy.optimize import minimize

from trivet.lab.measure.delivery import expected_calibration_error, refused, threshold_keeping
from trivet.search.relevance import READ

Numbers = NDArray[np.float64]

SHOWN = 8
RIDGE = 1.0
# A withheld memory costs the answer; one shown in vain costs some sixty tokens. So 96 of 100
# answerable prompts keep theirs.
KEPT = 0.96
# Probability from which a hit is called strong: next to "49 %" the word would mislead, however
# often it is right.
STRONG = 0.6
# Weight of a query from question and passage sets, against one to a realistic store.
PAIRS_WEIGHT = 0.3
TUNED, STOCK = "trivet-embedder-2", "all-MiniLM-L6-v2"
# Features are clipped beyond these quantiles of the training data.
RANGE = (0.002, 0.998)
# Few, and none about position: with ranks and gaps the fit predicts first hits better but refuses
# worse (made-up lives, 19 of 20 kept: 42 % refused with twelve features, 56 % with four).
COSINES = ("dense",)
WORDS = ("coverage", "exact")
GRAPH = ("graph_raw",)


@dataclass(frozen=True)
class Dump:
    """Each query's first candidates. `read`: each reranker's scores, NaN where it did not look."""

    values: Mapping[str, Numbers]
    read: Mapping[str, Numbers]
    label: NDArray[np.bool_]
    query: NDArray[np.int64]
    weight: Numbers
    kind: NDArray[np.str_]
    stratum: NDArray[np.str_]
    size: NDArray[np.int64]

    @property
    def answerable(self) -> NDArray[np.bool_]:
        """Return whether one of the first three answers; what was not found cannot be kept."""
        found = np.zeros(len(self.kind), dtype=bool)
        for query in np.unique(self.query):
            found[query] = self.label[self.query == query][:3].any()
        return found

    @property
    def unanswerable(self) -> NDArray[np.bool_]:
        return np.isin(self.kind, ("foreign", "scope", "absent")) | np.char.endswith(
            self.stratum, "unanswerable"
        )


@dataclass(frozen=True)
class Fitted:
    names: tuple[str, ...]
    weights: Numbers
    bias: float
    least: Numbers
    most: Numbers

    def probabilities(self, values: Numbers) -> Numbers:
        odds = np.clip(values, self.least, self.most) @ self.weights + self.bias
        found: Numbers = 1.0 / (1.0 + np.exp(-odds))
        return found


def load(paths: Sequence[Path], scores: Mapping[str, Path], recipe: str = "all") -> Dump:
    parts = [_load(path, scores, recipe) for path in paths]
    offsets = np.cumsum([0, *(len(part.kind) for part in parts)])
    return Dump(
        values={
            name: np.concatenate([part.values[name] for part in parts]) for name in parts[0].values
        },
        read={name: np.concatenate([part.read[name] for part in parts]) for name in parts[0].read},
        label=np.concatenate([part.label for part in parts]),
        query=np.concatenate(
            [part.query + offset for part, offset in zip(parts, offsets, strict=False)]
        ),
        weight=np.concatenate([part.weight for part in parts]),
        kind=np.concatenate([part.kind for part in parts]),
        stratum=np.concatenate([part.stratum for part in parts]),
        size=np.concatenate([part.size for part in parts]),
    )


def _load(path: Path, scores: Mapping[str, Path], recipe: str) -> Dump:
    with np.load(path) as arrays:
        query = arrays["query"].astype(np.int64)
        _, starts, counts = np.unique(query, return_index=True, return_counts=True)
        place = np.arange(len(query)) - np.repeat(starts, counts)
        asked = arrays["recipe"] == recipe
        kept = (place < SHOWN) & asked[query]
        lives = np.char.startswith(arrays["corpus"], "life-")
        return Dump(
            values={
                str(name): arrays["features"][kept, column].astype(np.float64)
                for column, name in enumerate(arrays["names"])
            },
            read={
                name: _read(file, path, query[kept], place[kept]) for name, file in scores.items()
            },
            label=arrays["label"][kept] > 0,
            query=query[kept],
            weight=np.where(lives, 1.0, PAIRS_WEIGHT)[query[kept]],
            kind=np.where(asked, arrays["kind"], "asked otherwise"),
            stratum=arrays["stratum"],
            size=arrays["size"],
        )


def _read(file: Path, dump: Path, query: NDArray[np.int64], place: NDArray[np.int64]) -> Numbers:
    """Return a candidate's best text score; NaN if unread or if the reranker saw its store."""
    with np.load(file) as arrays:
        stem = dump.stem
        if f"{stem}-query" not in arrays:
            return np.full(len(query), np.nan)
        best: dict[tuple[int, int], float] = {}
        rows = zip(arrays[f"{stem}-query"].tolist(), arrays[f"{stem}-place"].tolist(), strict=True)
        for key, score in zip(rows, arrays[f"{stem}-whole"].tolist(), strict=True):
            best[key] = max(score, best.get(key, score))
    return np.array(
        [best.get(key, np.nan) for key in zip(query.tolist(), place.tolist(), strict=True)]
    )


def fit(dump: Dump, names: tuple[str, ...], reader: str | None) -> Fitted:
    values, rows = matrix(dump, names, reader)
    label, weight = dump.label[rows].astype(np.float64), dump.weight[rows]
    least, most = np.quantile(values, RANGE, axis=0)
    clipped = np.clip(values, least, most)
    mean, deviation = clipped.mean(axis=0), clipped.std(axis=0) + 1e-9
    design = (clipped - mean) / deviation

    def loss(found: Numbers) -> tuple[float, Numbers]:
        odds = design @ found[:-1] + found[-1]
        value = (weight * (np.logaddexp(0, odds) - label * odds)).sum() + RIDGE / 2 * (
            found[:-1] ** 2
        ).sum()
        slope = weight * (1 / (1 + np.exp(-odds)) - label)
        return float(value), np.append(design.T @ slope + RIDGE * found[:-1], slope.sum())

    bounds = [(0.0, None)] * design.shape[1]
    found = minimize(
        loss,
        np.zeros(design.shape[1] + 1),
        jac=True,
        method="L-BFGS-B",
        bounds=[*bounds, (None, None)],
    )
    weights = found.x[:-1] / deviation
    return Fitted(
        _columns(names, reader), weights, float(found.x[-1] - mean @ weights), least, most
    )


def _columns(names: tuple[str, ...], reader: str | None) -> tuple[str, ...]:
    return names if reader is None else (*names, READ)


def matrix(
    dump: Dump, names: tuple[str, ...], reader: str | None
) -> tuple[Numbers, NDArray[np.bool_]]:
    columns = [dump.values[name] for name in names] + ([dump.read[reader]] if reader else [])
    rows = np.isfinite(columns[-1]) if reader else np.ones(len(dump.label), dtype=bool)
    return np.stack(columns, axis=1)[rows], rows


def judged(
    dump: Dump, model: Fitted, names: tuple[str, ...], reader: str | None, threshold: float
) -> dict[str, Any]:
    values, rows = matrix(dump, names, reader)
    probabilities, label, query = model.probabilities(values), dump.label[rows], dump.query[rows]
    best = np.zeros(len(dump.kind))
    np.maximum.at(best, query, probabilities)
    small = dump.size[query] < 50
    kept = dump.answerable & ~dump.unanswerable
    return {
        "calibration_error": round(expected_calibration_error([*probabilities], [*label]), 4),
        "calibration_error_under_50": round(
            expected_calibration_error([*probabilities[small]], [*label[small]]), 4
        ),
        "kept": {
            str(name): _share(best[kept & (dump.stratum == name)], threshold)
            for name in _names(dump.stratum[kept])
        },
        "refused": {
            f"{kind} {stratum}".strip(): 1 - _share(best[chosen], threshold)
            for kind in _names(dump.kind[dump.unanswerable])
            for stratum in _names(dump.stratum[dump.unanswerable & (dump.kind == kind)])
            for chosen in [dump.unanswerable & (dump.kind == kind) & (dump.stratum == stratum)]
        },
        "curve": curve(
            best[kept & (dump.kind == "own")], best[dump.unanswerable & (dump.kind == "own")]
        ),
    }


def curve(answerable: Numbers, unanswerable: Numbers) -> list[dict[str, float]]:
    rows = []
    for kept in (0.99, 0.98, 0.97, 0.96, 0.95, 0.93, 0.9, 0.85, 0.8):
        threshold = threshold_keeping([*answerable], kept)
        rows.append(
            {
                "threshold": round(threshold, 4),
                "kept": kept,
                "refused": refused([*unanswerable], threshold),
            }
        )
    return rows


def _names(values: NDArray[np.str_]) -> list[str]:
    return [str(name) for name in np.unique(values) if str(name) != "asked otherwise"]


def _share(best: Numbers, threshold: float) -> float:
    return round(float((best >= threshold).mean()), 4) if len(best) else 0.0


def described(model: Fitted) -> dict[str, Any]:
    columns = zip(model.names, model.weights, model.least, model.most, strict=True)
    features = {
        name: {
            "weight": round(float(weight), 6),
            "least": round(float(least), 6),
            "most": round(float(most), 6),
        }
        for name, weight, least, most in columns
    }
    return {"bias": round(model.bias, 6), "features": features}


def main() -> None:
    options = _options()
    scores = dict(item.split("=", 1) for item in options.scores)
    files = {name: Path(file) for name, file in scores.items()}
    features = (*COSINES, *GRAPH, *WORDS)
    blind = (*GRAPH, *WORDS)
    if options.kept:
        _write_read_anew(options, files, {TUNED: features, "other": blind})
        return
    shipped: dict[str, Any] = {}
    report: dict[str, Any] = {}
    thresholds: dict[str, float] = {}
    plans = {
        TUNED: (options.fit, features, "all"),
        STOCK: (options.stock, features, "all"),
        "other": (options.fit, blind, "all"),
        "words": (options.fit, WORDS, "lexical"),
    }
    for name, (paths, names, recipe) in plans.items():
        dump, check = load(paths, files, recipe), load([options.check], files, recipe)
        readers = [None, *files] if recipe == "all" and paths is options.fit else [None]
        models = {reader: fit(dump, names, reader) for reader in readers}
        shipped[name] = {
            "unread": described(models[None]),
            "read": {reader: described(model) for reader, model in models.items() if reader},
        }
        for reader, model in models.items():
            label = f"{name} {reader or 'unread'}"
            thresholds[label] = round(_threshold(check, model, names, reader), 4)
            if name != STOCK:
                report[label] = judged(check, model, names, reader, thresholds[label])
    _write(options, shipped, thresholds, report)


def _write_read_anew(
    options: argparse.Namespace, files: Mapping[str, Path], plans: Mapping[str, tuple[str, ...]]
) -> None:
    text = json.loads(options.kept.read_text(encoding="utf-8"))
    check = load([options.check], files)
    manifest = text["manifest"]
    for name, names in plans.items():
        models = {reader: fit(check, names, reader) for reader in files}
        place = text["embedders"][name] if name in text["embedders"] else text[name]
        place["read"] |= {reader: described(model) for reader, model in models.items()}
        for reader, model in models.items():
            label = f"{name} {reader}"
            threshold = round(_threshold(check, model, names, reader), 4)
            manifest["keeping_96_of_100"][label] = threshold
            print(label, judged(check, model, names, reader, threshold))
    chosen = f"{TUNED} {options.reader}"
    text["threshold"] = manifest["keeping_96_of_100"][chosen]
    text["strong"] = STRONG
    manifest["sha256"][options.check.name] = hashlib.sha256(options.check.read_bytes()).hexdigest()
    options.output.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")


def _threshold(dump: Dump, model: Fitted, names: tuple[str, ...], reader: str | None) -> float:
    values, rows = matrix(dump, names, reader)
    best = np.zeros(len(dump.kind))
    np.maximum.at(best, dump.query[rows], model.probabilities(values))
    return threshold_keeping(
        [*best[dump.answerable & (dump.kind == "own") & ~dump.unanswerable]], KEPT
    )


def _write(
    options: argparse.Namespace,
    shipped: dict[str, Any],
    thresholds: dict[str, float],
    report: dict[str, Any],
) -> None:
    chosen = (
        f"{TUNED} {options.reader}"
        if f"{TUNED} {options.reader}" in thresholds
        else f"{TUNED} unread"
    )
    files = [*options.fit, *options.stock]
    text = {
        "embedders": {name: shipped[name] for name in (TUNED, STOCK)},
        "other": shipped["other"],
        "words": shipped["words"],
        "threshold": thresholds[chosen],
        "strong": STRONG,
        "manifest": {
            "made_by": "training/fit_relevance.py",
            "sha256": {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files},
            "keeping_96_of_100": thresholds,
        },
    }
    options.output.write_text(json.dumps(text, indent=1) + "\n", encoding="utf-8")
    if options.results:
        options.results.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
    for name, found in report.items():
        print(
            name, thresholds[name], {key: value for key, value in found.items() if key != "curve"}
        )
        print("   ", [(row["kept"], round(row["refused"], 2)) for row in found["curve"]])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--fit", type=Path, nargs="+", default=[], help="files of dump_features.py")
    parser.add_argument(
        "--stock",
        type=Path,
        nargs="+",
        default=[],
        help="the same with --embedder folder:tests/models/minilm",
    )
    parser.add_argument(
        "--kept", type=Path, help="relevance.json in which to refit only the rerankers"
    )
    parser.add_argument(
        "--check",
        type=Path,
        required=True,
        help="a file of stores that the rerankers did not see; it chooses the threshold",
    )
    parser.add_argument(
        "--scores", nargs="*", default=[], metavar="NAME=FILE", help="of score_answers.py"
    )
    parser.add_argument(
        "--reader", default="trivet-reranker-12", help="the reranker at work where it is unsure"
    )
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--results", type=Path)
    return parser.parse_args()


if __name__ == "__main__":
    main()
