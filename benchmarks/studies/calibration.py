"""Can the stated relevance be believed? The shipped model over dumped candidates: error, reliability, refusals.

    python training/dump_features.py --stores CACHE --output features.npz --corpora NAMES...
    python benchmarks/studies/calibration.py features.npz --output benchmarks/results/calibration.json

`--plot calibration.svg` draws it.

On corpora that the model was fitted on this is what users get, not proof; for those left out, one after the other, see
the results that training/fit_relevance.py writes. Another corpus, dumped with --corpora FOLDER, is proof.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from trivet.lab.calibration import Bin, expected_calibration_error, refused, reliability, threshold_keeping
from trivet.search.relevance.model import relevance, relevance_model

SHOWN = 10
# The embedder that dump_features.py uses unless told otherwise.
EMBEDDER = "trivet-embedder"
ANSWERABLE, UNANSWERABLE = ("own", "small"), ("foreign", "scope", "absent")


@dataclass(frozen=True)
class Judged:
    """What the model says of one query's candidates."""

    corpus: str
    kind: str
    stated: list[float]
    relevant: list[bool]

    @property
    def best(self) -> float:
        return max(self.stated, default=0.0)


def read(path: Path, embedder: str, recipe: str) -> list[Judged]:
    with np.load(path) as arrays:
        names = [str(name) for name in arrays["names"]]
        rows, query, label = arrays["features"], arrays["query"], arrays["label"]
        about = list(zip(arrays["corpus"], arrays["kind"], arrays["recipe"], strict=True))
    queries = [Judged(str(corpus).partition("-")[0], str(kind), [], []) for corpus, kind, _ in about]
    for row, number, grade in zip(rows, query, label, strict=True):
        if len(queries[number].stated) < SHOWN and about[number][2] == recipe:
            features: Mapping[str, float] = dict(zip(names, map(float, row), strict=True))
            queries[number].stated.append(relevance(features, embedder))
            queries[number].relevant.append(bool(grade > 0))
    return [one for one, (_, _, asked) in zip(queries, about, strict=True) if asked == recipe]


def figures(queries: Sequence[Judged]) -> dict[str, Any]:
    hits = [one for one in queries if one.kind in ("own", "foreign")]
    stated = [value for one in hits for value in one.stated]
    relevant = [value for one in hits for value in one.relevant]
    own = [one.best for one in queries if one.kind == "own"]
    shipped, at_kept = relevance_model().threshold, threshold_keeping(own)
    return {
        "queries": len(queries),
        "calibration_error": round(expected_calibration_error(stated, relevant), 4),
        "bins": [asdict(part) for part in reliability(stated, relevant)],
        "kept_at_the_shipped_threshold": round(1 - refused(own, shipped), 4),
        "refused": {
            kind: {
                "at_the_shipped_threshold": round(refused(best, shipped), 4),
                "with_90_percent_kept": round(refused(best, at_kept), 4),
            }
            for kind in UNANSWERABLE
            if (best := [one.best for one in queries if one.kind == kind])
        },
    }


def draw(bins: Sequence[Bin], path: Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(5, 5), layout="constrained")
    axes.plot([0, 1], [0, 1], color="grey", linewidth=1, linestyle="--")
    axes.plot([part.stated for part in bins], [part.true for part in bins], marker="o")
    for part in bins:
        axes.annotate(f"{part.count:,}", (part.stated, part.true), textcoords="offset points", xytext=(6, -10))
    axes.set(xlabel="stated relevance", ylabel="share that was relevant", xlim=(0, 1), ylim=(0, 1))
    figure.savefig(path)
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("features", type=Path)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--plot", type=Path)
    parser.add_argument("--embedder", default=EMBEDDER)
    parser.add_argument("--recipe", choices=("all", "lexical"), default="all")
    options = parser.parse_args()
    queries = read(options.features, options.embedder, options.recipe)
    corpora = sorted({one.corpus for one in queries})
    results = {"all": figures(queries)} | {
        name: figures([one for one in queries if one.corpus == name]) for name in corpora
    }
    options.output.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if options.plot:
        draw([Bin(**part) for part in results["all"]["bins"]], options.plot)
    for name, found in results.items():
        told = {kind: tuple(shares.values()) for kind, shares in found["refused"].items()}
        print(
            f"{name:10} ECE {found['calibration_error']:.3f} kept {found['kept_at_the_shipped_threshold']:.3f} {told}"
        )


if __name__ == "__main__":
    main()
