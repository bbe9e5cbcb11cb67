"""Whether a recall takes longer where memories are longer: stores of as many memories of 60, 600 and 4,000 words.

    python benchmarks/long_memories.py --output benchmarks/results/long_memories.json

The stores are asked in turns, question by question, so that a noisy machine disturbs all alike. Vectors are sums of
words (`quick_vectors.py`): to embed thirty thousand passages would take most of the time and show nothing.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from manifest import manifest
from quick_vectors import quick_vectors
from texts import long_memories, queries
from trivet import Trivet
from trivet.models.embed import load

# The longest is about the most that fits into one memory (32 KiB).
WORDS = (60, 600, 4_000)
QUERIES = 200
AT_ONCE = 100


def main() -> None:
    options = _options()
    options.work.mkdir(parents=True, exist_ok=True)
    with ExitStack() as opened:
        stores = {
            words: opened.enter_context(Trivet.open(_built(options, words), background=False, rerank="off"))
            for words in WORDS
        }
        figures = _measure(stores)
    result = {"manifest": manifest(), "memories": options.memories, "words a memory": figures}
    print(json.dumps(figures, indent=1))
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _built(options: argparse.Namespace, words: int) -> Path:
    path: Path = options.work / f"lengths-{options.memories}-{words}.db"
    with quick_vectors(), Trivet.open(path, background=False, changes="off") as trivet:
        texts = list(long_memories(options.memories, words))
        for start in range(sum(trivet.stats().memories.values()), len(texts), AT_ONCE):
            trivet.remember_many({"content": text} for text in texts[start : start + AT_ONCE])
            trivet.drain()
    return path


def _measure(stores: dict[int, Trivet]) -> dict[str, Any]:
    embedder = load("bundled")
    assert embedder is not None
    bare: list[float] = []
    times: dict[int, dict[str, list[float]]] = {words: {} for words in stores}
    for trivet in stores.values():
        for query in queries(QUERIES):  # the posting lists of its words are read when a word is first asked for
            trivet.recall(query)
    for number, query in enumerate(queries(QUERIES)):
        began = time.perf_counter()
        embedder.embed_query(f"{query} {number + 500}")
        bare.append((time.perf_counter() - began) * 1000)
        for words, trivet in stores.items():
            answer = trivet.recall(f"{query} {number}{words}")
            for stage, took in {"recall": answer.took_ms, **answer.stages_ms}.items():
                times[words].setdefault(stage, []).append(took)
    one = statistics.median(bare)
    medians = {words: {stage: statistics.median(of) for stage, of in stages.items()} for words, stages in times.items()}
    shortest = medians[min(medians)]
    return {
        str(words): {
            "recall, in embeddings": round(stages["recall"] / one, 2),
            "times the shortest": round(stages["recall"] / shortest["recall"], 2),
            "median ms": {stage: round(took, 2) for stage, took in stages.items()},
        }
        for words, stages in medians.items()
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--memories", type=int, default=500)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "trivet-speed")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "long_memories.json")
    return parser.parse_args()


if __name__ == "__main__":
    main()
