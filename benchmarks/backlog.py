"""Measure whether texts waiting to be embedded slow down saves and recalls.

python benchmarks/backlog.py --output benchmarks/results/backlog.json

First without a worker: a save and a recall while nothing, a thousand texts, or the whole store
waits. Then the whole store is embedded again in the background, as after a change of model, while
recalls go on. Figures are medians of one run, as multiples of the first.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any
from unittest.mock import patch

from manifest import manifest
from quick_vectors import quick_vectors
from texts import memories, queries
from trivet import Trivet
from trivet.memory import remember

SAVED, ASKED = 60, 200
AT_ONCE = 1_000

Figures = dict[str, Any]


def main() -> None:
    options = _options()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "memories.db"
        waiting = _with_backlogs(path, options.sizes)
        beside = _beside_embedding(path)
    result = {"manifest": manifest(), "waiting": waiting, "embedded anew": beside}
    print(json.dumps(result, indent=1))
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _with_backlogs(path: Path, sizes: list[int]) -> Figures:
    new, asked = _new_texts(), _new_questions()
    figures: Figures = {}
    with quick_vectors(), Trivet.open(path, background=False, rerank="off") as trivet:
        texts = list(memories(1_000 + max(sizes)))
        _store(trivet, texts[:1_000])
        trivet.drain()
        _measure(trivet, new, asked)
        trivet.drain()
        done = 1_000
        for size in sizes:
            _store(trivet, texts[done : 1_000 + size])
            done = 1_000 + size
            figures[f"{size:,}"] = _measure(trivet, new, asked)
            print(size, figures[f"{size:,}"], flush=True)
    return _compared(figures, f"{sizes[0]:,}")


def _beside_embedding(path: Path) -> Figures:
    asked = _new_questions(1_000_000)
    figures: Figures = {}
    with quick_vectors(), Trivet.open(path, background=False, changes="off") as trivet:
        trivet.drain()
    with Trivet.open(path, changes="off", rerank="off") as trivet:
        _recalls(trivet, asked)
        figures["nothing to embed"] = {"recall_ms": _recalls(trivet, asked)}
        trivet.engine.store.upkeep.rebuild_vectors(trivet.engine.embedding.move())
        trivet.engine.worker.wake()
        before = trivet.stats().not_embedded
        began = time.perf_counter()
        figures["embedding"] = {"recall_ms": _recalls(trivet, asked)}
        took = time.perf_counter() - began
        figures["embedding"]["embedded_a_second"] = round(
            (before - trivet.stats().not_embedded) / took, 1
        )
    return _compared(figures, "nothing to embed")


def _measure(trivet: Trivet, new: Iterator[str], asked: Iterator[str]) -> Figures:
    _recalls(trivet, asked)
    saved = []
    for _ in range(SAVED):
        began = time.perf_counter()
        trivet.remember(next(new))
        saved.append((time.perf_counter() - began) * 1000)
    return {"remember_ms": round(statistics.median(saved), 2), "recall_ms": _recalls(trivet, asked)}


def _recalls(trivet: Trivet, asked: Iterator[str]) -> float:
    return round(statistics.median(trivet.recall(next(asked)).took_ms for _ in range(ASKED)), 2)


def _store(trivet: Trivet, texts: list[str]) -> None:
    """Skip the search for near-duplicates: it takes half of the time and is not measured here."""
    with patch.object(remember, "near_duplicates", lambda _, entries: ((),) * len(entries)):
        for start in range(0, len(texts), AT_ONCE):
            trivet.remember_many({"content": text} for text in texts[start : start + AT_ONCE])


def _new_texts() -> Iterator[str]:
    return memories(100_000, seed=23)


def _new_questions(first: int = 0) -> Iterator[str]:
    known = queries(300)
    return (f"{known[number % len(known)]} {number}" for number in count(first))


def _compared(figures: Figures, with_name: str) -> Figures:
    first = dict(figures[with_name])
    for one in figures.values():
        for name in first:
            one[name.replace("_ms", "_x")] = round(one[name] / first[name], 2)
    return figures


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[0, 1_000, 20_000])
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "backlog.json"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
