"""Measure a single save for each way of noticing changes.

python benchmarks/studies/saves.py training/lives/*/corpus.jsonl

All memories except the last few are stored and embedded at once; the last are saved one by one. Run
it on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from embedder import add_embedder, identity

from trivet import Trivet

SAVED = 45
WARM = 5


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stores", nargs="+", type=Path)
    add_embedder(parser)
    options = parser.parse_args()
    print(f"embedder {identity(options.embedder)}")
    lines = [
        line
        for path in sorted(options.stores)
        for line in path.read_text(encoding="utf-8").splitlines()
    ]
    texts = [json.loads(line)["text"] for line in lines]
    for changes in ("off", "words", "read"):
        with tempfile.TemporaryDirectory() as folder:
            took = sorted(_saves(Path(folder) / "memory.db", texts, changes, options.embedder))
        p50, p90 = statistics.median(took), took[int(len(took) * 0.9)]
        print(f"{changes:6} {len(texts)} memories: p50 {p50:.1f} ms, p90 {p90:.1f} ms")


def _saves(path: Path, texts: list[str], changes: str, embedder: str) -> list[float]:
    took = []
    with Trivet.open(path, background=False, changes=changes, embedder=embedder) as memory:
        memory.remember_many({"content": text} for text in texts[:-SAVED])
        memory.engine.worker.drain()
        for text in texts[-SAVED:]:
            began = time.perf_counter()
            memory.remember(text)
            took.append((time.perf_counter() - began) * 1000)
    return took[WARM:]


if __name__ == "__main__":
    main()
