r"""Judge readers on unseen stores by order, refusals and probabilities.

python training/judge_readers.py --features dev.npz --candidates dev.json.xz \
    --scores shipped=OUT/scores-answers.npz:before taught=OUT/scores-answers.npz:after \
        large=T/check.npz:candidates

`--features` and `--candidates` are from dump_features.py; a `--scores` column has a number per text
of each candidate, in order (taught_readers.py, large_teacher.py). Reports for each question's first
five candidates: the reciprocal rank of the first answer by the reader alone; the share of
unanswerable questions refused when .95 of the answerable ones are kept; and the log loss of
fit_relevance.py's probabilities with its scores. Intervals are 95 % over questions.
"""

from __future__ import annotations

import argparse
import json
import lzma
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from fit_relevance import COSINES, GRAPH, WORDS, Dump, fit, load, matrix
from trivet.lab.measure.delivery import refused, threshold_keeping

READ, KEPT, DRAWS = 5, 0.95, 2_000


def main() -> None:
    options = _options()
    with lzma.open(options.candidates) as file:
        readings = json.load(file)
    query = np.array([one["query"] for one in readings for _ in one["places"]])
    place = np.array([place for one in readings for place in one["places"]])
    for named in options.scores:
        name, _, source = named.partition("=")
        path, _, column = source.rpartition(":")
        with np.load(path) as found, TemporaryDirectory() as folder:
            kept = Path(folder) / "scores.npz"
            columns = {"query": query, "place": place, "whole": found[column].astype(np.float32)}
            dataset = options.candidates.name.partition(".")[0]
            np.savez(kept, **{f"{dataset}-{key}": value for key, value in columns.items()})
            print(name, judged(load([options.features], {name: kept}), name))


def judged(rows: Dump, reader: str) -> dict[str, object]:
    mine = rows.kind == "own"
    answered, unanswered = (
        np.flatnonzero(mine & one)
        for one in (rows.answerable & ~rows.unanswerable, rows.unanswerable)
    )
    _, starts, counts = np.unique(rows.query, return_index=True, return_counts=True)
    first = np.arange(len(rows.query)) - np.repeat(starts, counts) < READ
    use = np.flatnonzero(first & np.isfinite(rows.read[reader]))
    scores, query = rows.read[reader][use], rows.query[use]
    best = np.full(len(rows.kind), -np.inf)
    np.maximum.at(best, query, scores)
    ranks = np.array(
        [_reciprocal(scores[query == one], rows.label[use][query == one]) for one in answered]
    )
    features = (*COSINES, *GRAPH, *WORDS)
    values, inside = matrix(rows, features, reader)
    likely = fit(rows, features, reader).probabilities(values)
    label, weight = rows.label[inside].astype(float), rows.weight[inside]
    losses = -(label * np.log(likely) + (1 - label) * np.log(1 - likely))
    return {
        "reciprocal rank": _with_interval(ranks),
        f"refused where {KEPT} are kept": _refused(best[unanswered], best[answered]),
        "log loss": round(float((weight * losses).sum() / weight.sum()), 4),
        "questions": (len(answered), len(unanswered)),
    }


def _reciprocal(scores: np.ndarray, labels: np.ndarray) -> float:
    hits = np.flatnonzero(labels[np.argsort(-scores)])
    return 1 / (1 + int(hits[0])) if len(hits) else 0.0


def _refused(none: np.ndarray, some: np.ndarray) -> str:
    def of(none: np.ndarray, some: np.ndarray) -> float:
        return float(refused([*none], threshold_keeping([*some], KEPT)))

    chance = np.random.default_rng(0)
    drawn = [
        of(chance.choice(none, len(none)), chance.choice(some, len(some))) for _ in range(DRAWS)
    ]
    return _told(of(none, some), drawn)


def _with_interval(values: np.ndarray) -> str:
    chance = np.random.default_rng(0)
    return _told(
        float(values.mean()),
        [float(chance.choice(values, len(values)).mean()) for _ in range(DRAWS)],
    )


def _told(value: float, drawn: Sequence[float]) -> str:
    low, high = np.quantile(drawn, (0.025, 0.975))
    return f"{value:.3f} ({low:.3f} to {high:.3f})"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--features", type=Path, required=True)
    parser.add_argument("--candidates", type=Path, required=True)
    parser.add_argument("--scores", nargs="+", required=True, metavar="NAME=FILE:COLUMN")
    return parser.parse_args()


if __name__ == "__main__":
    main()
