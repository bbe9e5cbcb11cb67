r"""Measure the rerankers' quantization loss: int8 against the device's scores on the same lists.

python judge_int8.py --models FOLDER --eval FOLDER --lists LISTS.npz --scores FOLDER \
    --tokenizer T --output OUT

Uses one thread, and some queries of some corpora. With `--tuned FOLDER` (dump_eval.py --embedder
folder:...) it also judges rankings of the tuned int8 embedder, whose graph walks start from its
hits.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

from encoder import CLS, SEP
from evaluate import (
    Corpus,
    Listed,
    compared,
    interval,
    kept_lists,
    kept_scores,
    listed,
    measured,
    order_of,
    read_corpus,
    reranked,
    stock_reference,
)  # fmt: skip

CORPORA = ("locomo", "cosqa", "house")
HEAD = 20
SHARES = (0.5, 1.0)


def session(path: Path, threads: int = 1) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3
    # The fused operator takes three times as long on long batches.
    apart = ["SkipLayerNormFusion"]
    return onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=apart
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("models", "eval", "lists", "scores", "tokenizer", "output"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--tuned", type=Path)
    parser.add_argument("--queries", type=int, default=100)
    arguments = parser.parse_args()
    figures: dict[str, Any] = {}
    if arguments.tuned:
        for path in sorted(arguments.tuned.glob("*.json.xz")):
            stock, tuned = read_corpus(arguments.eval / path.name, None), read_corpus(path, None)
            figures[f"product with the int8 embedder, {stock.name}"] = product(
                stock, tuned, arguments.lists
            )
    for name in CORPORA:
        corpus = read_corpus(arguments.eval / f"{name}.json.xz", arguments.tokenizer)
        for model in ("reranker-12", "reranker-3"):
            run = session(arguments.models / model / "model.onnx")
            scores = kept_scores(arguments.scores / f"scores-{model}.npz", corpus)
            lists = kept_lists(arguments.lists, corpus)
            figures[f"{model}, {name}"] = against(corpus, lists, scores, run, arguments.queries)
            print(model, name, figures[f"{model}, {name}"], flush=True)
            arguments.output.write_text(json.dumps(figures, indent=1) + "\n")


def product(stock: Corpus, tuned: Corpus, lists: Path) -> dict[str, Any]:
    base = stock_reference(stock)
    own = listed(tuned, tuned.legs["dense"]).documents
    mixed = listed(stock, tuned.legs["dense"]).documents
    return {
        "dense": round(float(measured(tuned, order_of(tuned.legs["dense"]))["ndcg"].mean()), 4),
        "fused": compared(base, measured(tuned, own)),
        "fused with the walks of the stock embedder": compared(base, measured(stock, mixed)),
        "fp16, walks of the stock embedder": compared(
            base, measured(stock, kept_lists(lists, stock).documents)
        ),
    }


def against(
    corpus: Corpus,
    lists: Listed,
    scores: list[np.ndarray],
    run: onnxruntime.InferenceSession,
    queries: int,
) -> dict[str, Any]:
    chosen = np.sort(np.random.default_rng(1).permutation(corpus.answerable)[:queries])
    places = corpus.passages_of()
    some = Listed(
        [lists.documents[at][:HEAD] for at in chosen], [lists.scores[at][:HEAD] for at in chosen]
    )
    before = [scores[at][:HEAD] for at in chosen]
    after = [
        np.array(
            [
                best(run, corpus, int(corpus.query_places[at]), places[document])
                for document in documents.tolist()
            ]
        )
        for at, documents in zip(chosen, some.documents, strict=True)
    ]
    part = Corpus(**{name: getattr(corpus, name) for name in corpus.__slots__})
    part.queries, part.answerable = [corpus.queries[at] for at in chosen], len(chosen)
    rows: dict[str, Any] = {"queries": len(chosen)}
    for share in SHARES:
        one, other = (measured(part, reranked(some, own, HEAD, share)) for own in (before, after))
        rows[f"share {share:g}"] = {
            "fp16": round(float(one["ndcg"].mean()), 4),
            "int8": round(float(other["ndcg"].mean()), 4),
            "difference": [round(value, 4) for value in interval(one["ndcg"], other["ndcg"])],
        }
    rows["correlation"] = round(
        float(np.corrcoef(np.concatenate(before), np.concatenate(after))[0, 1]), 4
    )
    return rows


def best(
    run: onnxruntime.InferenceSession, corpus: Corpus, query: int, passages: list[int]
) -> float:
    asked = tokens(corpus, query)
    return max(score(run, asked, tokens(corpus, passage)) for passage in passages)


def tokens(corpus: Corpus, place: int) -> list[int]:
    start = corpus.texts.host_starts[place]
    return [int(one) for one in corpus.texts.host_ids[start : start + corpus.texts.lengths[place]]]


def score(run: onnxruntime.InferenceSession, query: list[int], passage: list[int]) -> float:
    ids = np.array([[CLS, *query, SEP, *passage, SEP]])
    segments = np.array([[0] * (len(query) + 2) + [1] * (len(passage) + 1)])
    feed = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": segments}
    return float(run.run(None, feed)[0][0])


if __name__ == "__main__":
    main()
