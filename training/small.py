"""Teach a small reranker what a trained one knows, on a machine of its own, and score kept lists with it.

    python small.py --reranker reranker-6.npz --tokenizer T --data KINDS --eval EVAL --lists LISTS.npz --output OUT \
        --seconds 300

What `stages.py` does last, for when that was interrupted: negatives come from words alone, since the teacher tells
apart what is an answer after all.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from data import mine_by_words, read_kinds, some_of
from encoder import Reranker, load_half, ready, save_half, smaller
from evaluate import DEPTH, kept_lists, read_corpus, rerank_scores
from judge import padded
from stages import KEPT, SMALL, SMALL_PLAN, TAUGHT_CANDIDATES, TAUGHT_ROWS, worth_of
from train import Plan, held_out_accuracy, teach, train_reranker

GIVEN = 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("reranker", "tokenizer", "data", "eval", "lists", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--seconds", type=float, required=True, help="when training ends, counted from the start")
    arguments = parser.parse_args()
    began = time.monotonic()
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch._dynamo.config.recompile_limit = 64
    teacher = load_half(arguments.reranker)
    kinds, texts = read_kinds(arguments.data, arguments.tokenizer, "cuda")
    mine_by_words(kinds, texts, "cuda", GIVEN)
    kinds = [some_of(kind, TAUGHT_ROWS, TAUGHT_CANDIDATES) for kind in kinds]
    soft = teach(kinds, texts, [teacher])
    start = smaller(teacher, KEPT, worth_of(kinds, texts, teacher), SMALL.inner)
    plan = Plan(seconds=arguments.seconds - (time.monotonic() - began), compiled=True, **SMALL_PLAN)
    state = train_reranker(kinds, texts, start, plan, soft)
    arguments.output.mkdir(parents=True, exist_ok=True)
    save_half(state, arguments.output / "reranker-4.npz")
    model = ready(Reranker(SMALL), state, "cuda")
    arrays: dict[str, Any] = {}
    for path in sorted(arguments.eval.glob("*.json.xz")):
        corpus = read_corpus(path, arguments.tokenizer, "cuda")
        scores = rerank_scores(corpus, kept_lists(arguments.lists, corpus), model, DEPTH, len(corpus.queries))
        arrays[corpus.name] = padded(scores, np.nan, np.float32)
    np.savez_compressed(arguments.output / "scores-reranker-4-tuned.npz", **arrays)
    print(json.dumps(held_out_accuracy(kinds, texts, state, SMALL)))


if __name__ == "__main__":
    main()
