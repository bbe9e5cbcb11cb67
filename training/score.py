"""Score each question's first candidates with rerankers; blends can then be tuned without a device.

python score.py --tokenizer T --eval EVAL --words embedder.npz --output OUT WEIGHTS.npz...

Candidates come from dump_eval.py's files, fused like the product, and are kept in OUT/lists.npz. A
`!` after a file marks ReLU feed-forward parts. Writes scores-NAME.npz. Rerankers stored without a
word table use that of `--words`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from encoder import Reranker, load_reranker, ready, shape_of
from evaluate import DEPTH, Corpus, Listed, listed, padded, read_corpus, rerank_scores


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("tokenizer", "eval", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--words", type=Path)
    parser.add_argument("--most", type=int, help="queries a corpus, for a trial run")
    parser.add_argument("names", nargs="+")
    arguments = parser.parse_args()
    torch.backends.cuda.enable_cudnn_sdp(False)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    began = time.monotonic()
    paths = sorted(arguments.eval.glob("*.json.xz"))
    corpora = [read_corpus(path, arguments.tokenizer, device, arguments.most) for path in paths]
    lists = [listed(corpus, corpus.legs["dense"]) for corpus in corpora]
    np.savez_compressed(arguments.output / "lists.npz", **kept(corpora, lists))
    for name in arguments.names:
        file = Path(name.removesuffix("!"))
        state = load_reranker(file, arguments.words)
        model = ready(Reranker(shape_of(state, name.endswith("!"))), state, device)
        arrays: dict[str, Any] = {
            corpus.name: padded(
                rerank_scores(corpus, own, model, DEPTH, len(corpus.queries)), np.nan, np.float32
            )
            for corpus, own in zip(corpora, lists, strict=True)
        }
        np.savez_compressed(arguments.output / f"scores-{file.stem}.npz", **arrays)
        print(f"[{time.monotonic() - began:6.1f}] scored {file.stem}", flush=True)


def kept(corpora: Sequence[Corpus], lists: Sequence[Listed]) -> dict[str, Any]:
    arrays: dict[str, Any] = {}
    for corpus, own in zip(corpora, lists, strict=True):
        dense = corpus.legs["dense"]
        arrays[f"{corpus.name}.dense_documents"] = padded(
            [[at for at, _ in one] for one in dense], -1, np.int32
        )
        arrays[f"{corpus.name}.dense_scores"] = padded(
            [[s for _, s in one] for one in dense], np.nan, np.float32
        )
        arrays[f"{corpus.name}.documents"] = padded(own.documents, -1, np.int32)
        arrays[f"{corpus.name}.fused"] = padded(own.scores, np.nan, np.float32)
    return arrays


if __name__ == "__main__":
    main()
