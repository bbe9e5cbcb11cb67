"""Score kept lists with rerankers as they appear, beside the training; what blends best is found without a device.

    python score.py --tokenizer T --eval EVAL --lists lists-tuned.npz --model embedder.npz --output OUT NAME...

A name is that of a weights file in OUT, to which `@0.85` may be added: so much of its encoder, the rest being the
encoder it started from. `!` behind a name: the small shape with the word table of reranker-6. Writes scores-NAME.npz.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from encoder import STOCK_SHAPE, Reranker, State, load_half, ready
from evaluate import DEPTH, kept_lists, read_corpus, rerank_scores
from judge import SHALLOW, padded
from stages import SMALL


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("tokenizer", "eval", "lists", "model", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--most", type=int, help="queries a corpus, for a trial run")
    parser.add_argument("names", nargs="+")
    arguments = parser.parse_args()
    torch.backends.cuda.enable_cudnn_sdp(False)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    began = time.monotonic()
    paths = sorted(arguments.eval.glob("*.json.xz"))
    corpora = [read_corpus(path, arguments.tokenizer, device, arguments.most) for path in paths]
    lists = [kept_lists(arguments.lists, corpus) for corpus in corpora]
    embedder = load_half(arguments.model)
    for name in arguments.names:
        file, _, share = name.removesuffix("!").partition("@")
        state = waited(arguments.output / f"{file}.npz")
        small = name.endswith("!")
        if small:
            state = {
                "encoder.words.weight": waited(arguments.output / "reranker-6.npz")["encoder.words.weight"]
            } | state
        if share:
            state = mixed(state, embedder, float(share))
        model = ready(Reranker(SMALL if small else STOCK_SHAPE), state, device)
        arrays: dict[str, Any] = {}
        whole = file.startswith("reranker") and not share
        for corpus, own in zip(corpora, lists, strict=True):
            count = len(corpus.queries) if whole and arguments.most is None else corpus.answerable
            scores = rerank_scores(corpus, own, model, DEPTH if whole else SHALLOW, count)
            arrays[corpus.name] = padded(scores, np.nan, np.float32)
        np.savez_compressed(arguments.output / f"scores-{file}{'-' + share if share else ''}.npz", **arrays)
        print(f"[{time.monotonic() - began:6.1f}] scored {name}", flush=True)


def waited(path: Path) -> State:
    while not path.exists():
        time.sleep(0.5)
    return load_half(path)


def mixed(state: State, embedder: State, share: float) -> State:
    """The reranker with a part of its encoder given back to the embedder; the head stays."""
    return {
        name: share * value + (1 - share) * embedder[name.removeprefix("encoder.")]
        if name.startswith("encoder.")
        else value
        for name, value in state.items()
    }


if __name__ == "__main__":
    main()
