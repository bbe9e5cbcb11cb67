"""Try depths, blends and graph treatments for reranking, leaving out a corpus at a time.

python blends.py --features FOLDER --eval FOLDER --reranker best|fast|both --output OUT.json

A reranker reads one memory at a time, so it cannot see a bridge to the answer. `shared` blends the
reranker against all legs alike; `whole` blends it against the text legs only and leaves the graph's
part unchanged.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from evaluate import (
    CHECK,
    WEIGHTS,
    Corpus,
    compared,
    interval,
    measured,
    read_corpus,
    standard,
    stock_reference,
)

DEPTHS = (8, 10, 12, 15, 20, 30, 50)
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0)
GRAPHS = ("shared", "whole")

Setting = tuple[int, float, str]
Values = dict[str, dict[str, np.ndarray]]


@dataclass(slots=True)
class Lists:
    """Each answerable query's fused documents, with text, graph and reranker scores."""

    corpus: Corpus
    documents: list[np.ndarray]
    text: list[np.ndarray]
    graph: list[np.ndarray]
    scores: list[np.ndarray]


def read_lists(path: Path, corpus: Corpus, rerankers: Sequence[str]) -> Lists:
    with np.load(path) as arrays:
        rows, first, documents = (
            arrays["candidates"].astype(float),
            arrays["first"],
            arrays["documents"],
        )
        column = {name: at for at, name in enumerate(arrays["candidate_columns"].tolist())}
    lists = Lists(corpus, [], [], [], [])
    for at in range(corpus.answerable):
        own = rows[first[at] : first[at + 1]]
        graph = own[:, column["graph_raw"]]
        speaks = bool((~np.isnan(own[:, column["graph_rank"]])).any())
        active = {"lexical", "dense"} | ({"graph"} if speaks else set())
        total = sum(WEIGHTS[leg] for leg in active)
        text = sum(
            WEIGHTS[leg] / total * own[:, column[f"{leg}_spread"]] for leg in ("lexical", "dense")
        )
        lists.documents.append(documents[first[at] : first[at + 1]].astype(np.int64))
        lists.text.append(np.asarray(text))
        lists.graph.append(WEIGHTS["graph"] / total * graph if speaks else np.zeros(len(own)))
        lists.scores.append(np.mean([standard(own[:, column[name]]) for name in rerankers], axis=0))
    return lists


def blended(lists: Lists, depth: int, share: float, graph: str) -> list[np.ndarray]:
    answers = []
    for documents, text, walked, scores in zip(
        lists.documents, lists.text, lists.graph, lists.scores, strict=True
    ):
        head = min(depth, len(documents))
        unit = (text + walked)[:head].std() or 1.0
        kept = (1 - share) * text + (walked if graph == "whole" else (1 - share) * walked)
        mixed = kept[:head] / unit + share * standard(scores[:head])
        order = np.argsort(-mixed, kind="stable")
        answers.append(np.concatenate([documents[:head][order], documents[head:]]))
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("features", "eval", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--reranker", choices=("best", "fast", "both"), required=True)
    arguments = parser.parse_args()
    rerankers = ("best", "fast") if arguments.reranker == "both" else (arguments.reranker,)
    values: dict[Setting, Values] = {}
    bases: Values = {}
    for path in sorted(arguments.features.glob("features-*.npz")):
        corpus = read_corpus(
            arguments.eval / f"{path.stem.removeprefix('features-')}.json.xz", None
        )
        bases[corpus.name] = stock_reference(corpus)
        lists = read_lists(path, corpus, rerankers)
        for setting in [
            (depth, share, graph) for depth in DEPTHS for share in SHARES for graph in GRAPHS
        ]:
            values.setdefault(setting, {})[corpus.name] = measured(corpus, blended(lists, *setting))
    names = [name for name in bases if name != CHECK]
    figures: dict[str, Any] = {"fixed": {}, "left out": {}}
    for (depth, share, graph), own in values.items():
        row = {name: compared(base, own[name]) for name, base in bases.items()}
        gain = round(float(np.mean([row[name]["difference"] for name in names])), 4)
        worse = [name for name in bases if row[name]["interval"][1] < 0]
        figures["fixed"][f"top{depth} {share:g} {graph}"] = {
            "mean gain": gain,
            "worse": worse,
            "corpora": row,
        }
        cells = " ".join(
            f"{name} {one['ndcg']:.3f}{mark(one['interval'])}{one['recall']:.3f}"
            for name, one in row.items()
        )
        print(f"top{depth:<3d} {share:g} {graph:6s} {gain:+.4f} worse {worse} {cells}")
    for depth in DEPTHS:
        figures["left out"][f"top{depth}"] = left_out(values, bases, names, depth)
        print(f"left out top{depth}", figures["left out"][f"top{depth}"])
    arguments.output.write_text(json.dumps(figures, indent=1) + "\n")


def mark(bounds: Sequence[float]) -> str:
    return "+" if bounds[0] > 0 else "-" if bounds[1] < 0 else " "


def left_out(
    values: Mapping[Setting, Values], bases: Values, names: Sequence[str], depth: int
) -> dict[str, Any]:
    """Return for each corpus the share and graph part best on the others, and the result."""
    rows: dict[str, Any] = {}
    for name in names:
        settings = [setting for setting in values if setting[0] == depth]

        def mean(setting: Setting, name: str = name) -> float:
            return float(
                np.mean([values[setting][other]["ndcg"].mean() for other in names if other != name])
            )

        best = max(settings, key=mean)
        own = values[best][name]["ndcg"]
        rows[name] = [
            *best[1:],
            round(float(own.mean()), 4),
            [round(v, 4) for v in interval(bases[name]["ndcg"], own)],
        ]
    rows["mean gain"] = round(float(np.mean([rows[name][3][0] for name in names])), 4)
    return rows


if __name__ == "__main__":
    main()
