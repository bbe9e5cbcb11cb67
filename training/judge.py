"""Judge the weights that `stages.py` writes as they appear, beside the training, and keep lists and scores.

    python judge.py --model stock.npz --tokenizer tokenizer.json --eval EVAL --output OUT

Writes figures.json, `lists-*.npz` (dense and fused rankings) and `scores-*.npz` (the reranker's scores of the fused
heads); all choices of blend, depth and fusion can then be made without a device.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from encoder import STOCK_SHAPE, Encoder, Reranker, Shape, State, averaged, load_half, ready
from evaluate import (
    DEPTH,
    Listed,
    Ranking,
    judge_embedder,
    judge_reranker,
    listed,
    read_corpus,
    rerank_scores,
    table,
)
from stages import ALPHA, SMALL, TEACHERS

ALPHAS = (0.5, 0.6, 0.7, 0.8, 1.0)
SHALLOW = 30


class Judge:
    def __init__(self, arguments: argparse.Namespace) -> None:
        self.began = time.monotonic()
        self.output: Path = arguments.output
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.stock = load_half(arguments.model)
        paths = sorted(arguments.eval.glob("*.json.xz"))
        self.corpora = [read_corpus(path, arguments.tokenizer, self.device, arguments.most) for path in paths]
        self.figures: dict[str, Any] = {}
        self.lists: dict[str, dict[str, Listed]] = {
            "stock": {corpus.name: listed(corpus, corpus.legs["dense"]) for corpus in self.corpora}
        }
        self.tell("read")

    def tell(self, text: str) -> None:
        print(f"[{time.monotonic() - self.began:6.1f}] {text}", flush=True)

    def wait(self, name: str) -> State:
        path = self.output / f"{name}.npz"
        while not path.exists():
            time.sleep(0.5)
        return load_half(path)

    def keep(self, name: str, figures: Any) -> None:
        self.figures[name] = figures
        path = self.output / "figures.json"
        path.with_suffix(".new").write_text(json.dumps(self.figures, indent=1))
        path.with_suffix(".new").rename(path)

    def embedder(self, name: str, tuned: State, alpha: float) -> dict[str, list[Ranking]]:
        state = averaged([tuned, self.stock], [alpha, 1 - alpha])
        figures, rankings = judge_embedder(self.corpora, ready(Encoder(), state, self.device))
        self.keep(f"{name} {alpha:g}", figures)
        self.tell(f"{name} {alpha:g}\n{table(figures, 'dense')}\n{table(figures, 'fused')}")
        return rankings

    def keep_lists(self, name: str, rankings: Mapping[str, Sequence[Ranking]]) -> None:
        self.lists[name] = {corpus.name: listed(corpus, rankings[corpus.name]) for corpus in self.corpora}
        arrays: dict[str, Any] = {}
        for corpus in self.corpora:
            own, dense = self.lists[name][corpus.name], rankings[corpus.name]
            arrays[f"{corpus.name}.dense_documents"] = padded([[at for at, _ in one] for one in dense], -1, np.int32)
            arrays[f"{corpus.name}.dense_scores"] = padded([[s for _, s in one] for one in dense], np.nan, np.float32)
            arrays[f"{corpus.name}.documents"] = padded(own.documents, -1, np.int32)
            arrays[f"{corpus.name}.fused"] = padded(own.scores, np.nan, np.float32)
        np.savez_compressed(self.output / f"lists-{name}.npz", **arrays)

    def reranker(self, name: str, state: State, lists: str, shape: Shape = STOCK_SHAPE, whole: bool = False) -> None:
        """`whole`: the unanswerable queries too, and the lists to their full depth."""
        model = ready(Reranker(shape), state, self.device)
        figures: dict[str, Any] = {}
        arrays: dict[str, Any] = {}
        for corpus in self.corpora:
            own = self.lists[lists][corpus.name]
            count = len(corpus.queries) if whole else corpus.answerable
            scores = rerank_scores(corpus, own, model, DEPTH if whole else SHALLOW, count)
            figures[corpus.name] = judge_reranker(corpus, own, scores)
            arrays[corpus.name] = padded(scores, np.nan, np.float32)
        self.keep(f"{name} on {lists}", figures)
        np.savez_compressed(self.output / f"scores-{name}-{lists}.npz", **arrays)
        columns = ("before", "top20_w0.5", "top30_w0.5", "top30_w0.7", "top30_w1")
        self.tell(f"{name} on {lists}\n" + "\n".join(table(figures, column) for column in columns))


def padded(rows: Sequence[Sequence[float] | np.ndarray], filler: float, kind: type) -> np.ndarray:
    table: np.ndarray = np.full((len(rows), DEPTH), filler, dtype=kind)
    for at, row in enumerate(rows):
        table[at, : min(len(row), DEPTH)] = row[:DEPTH]
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("model", "tokenizer", "eval", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--most", type=int, help="queries a corpus, for a trial run")
    arguments = parser.parse_args()
    torch.backends.cuda.enable_cudnn_sdp(False)
    judge = Judge(arguments)
    judge.embedder("embedder-1", judge.wait("embedder-1"), ALPHA)
    tuned = judge.wait("embedder")
    for alpha in ALPHAS:
        rankings = judge.embedder("embedder", tuned, alpha)
        if alpha == ALPHA:
            judge.keep_lists("tuned", rankings)
    first = f"teacher-{TEACHERS[0][0]}"
    judge.reranker(first, judge.wait(first), "tuned")
    best = judge.wait("reranker-6")
    judge.reranker("reranker-6", best, "tuned", whole=True)
    judge.reranker("reranker-6", best, "stock")
    small = {"encoder.words.weight": best["encoder.words.weight"]} | judge.wait("reranker-4")
    judge.reranker("reranker-4", small, "tuned", SMALL, whole=True)
    (judge.output / "JUDGED").write_text("done\n")
    judge.tell("done")


if __name__ == "__main__":
    main()
