"""Time rerankers in query embeddings: python pair_speed.py MODELS OUT.json

A reranker reads twenty memories of sixty tokens. Both use two threads and take turns, so that noise
affects both. Reports median and minimum of the rounds; run it on an idle machine.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime

THREADS, ROUNDS, EMBEDDINGS_A_ROUND = 2, 15, 20
MEMORIES, MEMORY_TOKENS, QUERY_TOKENS = 20, 60, 12
BATCHES = (20, 10, 5)
RERANKERS = ("reranker-3", "reranker-12")


def session(path: Path, apart: bool) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    options.log_severity_level = 3
    disabled = ["SkipLayerNormFusion"] if apart else None
    return onnxruntime.InferenceSession(
        str(path), options, providers=["CPUExecutionProvider"], disabled_optimizers=disabled
    )


def main() -> None:
    models, output = Path(sys.argv[1]), Path(sys.argv[2])
    chance = np.random.default_rng(0)
    query = chance.integers(2000, 20000, (1, QUERY_TOKENS))
    # [CLS] query [SEP] memory [SEP]; the query's twelve tokens include two special ones.
    pairs = chance.integers(2000, 20000, (MEMORIES, QUERY_TOKENS + MEMORY_TOKENS + 1))
    segments = np.zeros_like(pairs)
    segments[:, QUERY_TOKENS:] = 1
    embedder = session(models / "embedder" / "model.onnx", apart=False)
    runs = {name: session(models / name / "model.onnx", apart=True) for name in RERANKERS}

    def embed() -> None:
        embedder.run(None, {"input_ids": query, "attention_mask": np.ones_like(query)})

    def rerank(run: onnxruntime.InferenceSession, size: int) -> None:
        for start in range(0, MEMORIES, size):
            part = slice(start, start + size)
            mask = np.ones_like(pairs[part])
            run.run(
                None,
                {
                    "input_ids": pairs[part],
                    "attention_mask": mask,
                    "token_type_ids": segments[part],
                },
            )

    units: list[float] = []
    took: dict[str, list[float]] = {
        f"{name}, batches of {size}": [] for name in runs for size in BATCHES
    }
    for number in range(ROUNDS + 1):
        unit = statistics.median(milliseconds(embed) for _ in range(EMBEDDINGS_A_ROUND))
        own = {
            f"{name}, batches of {size}": milliseconds(lambda run=run, size=size: rerank(run, size))  # type: ignore[misc]
            for name, run in runs.items()
            for size in BATCHES
        }
        if number:  # The first round warms up.
            units.append(unit)
            for name, value in own.items():
                took[name].append(value)
    figures: dict[str, Any] = {
        "load": os.getloadavg()[0],
        "query embedding ms": spread(units, 1.0, 1.0),
    }
    for name, values in took.items():
        figures[name] = spread(values, statistics.median(units), min(units))
    output.write_text(json.dumps(figures, indent=1) + "\n")
    for name, row in figures.items():
        print(name, row)


def milliseconds(call: Callable[[], None]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1e3


def spread(values: list[float], unit: float, least: float) -> dict[str, float]:
    return {
        "median ms": round(statistics.median(values), 2),
        "least ms": round(min(values), 2),
        "median in query embeddings": round(statistics.median(values) / unit, 1),
        "least in least": round(min(values) / least, 1),
    }


if __name__ == "__main__":
    main()
