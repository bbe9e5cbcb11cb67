"""Measure whether recalls take longer on longer memories: stores of 60, 600 and 4,000 words each.

python benchmarks/long_memories.py --output benchmarks/results/long_memories.json [--data FOLDER]

Synthetic texts follow the demo memories' word pairs, so each long one contains nearly all words and
names of the questions: the worst case. With `--data`, a folder with LoCoMo, stretches of its chats
are asked its questions too.

The stores take turns, question by question, so that noise affects all alike. Vectors of synthetic
texts are sums of words (`quick_vectors.py`). Chats are embedded, because the passage that matches
decides what a recall reads.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from manifest import manifest
from quick_vectors import quick_vectors
from texts import long_memories, queries
from trivet import Trivet
from trivet.lab.datasets.conversation_collections import read_locomo
from trivet.lab.datasets.dataset import Document
from trivet.models.embed import load

# The longest is close to the maximum size of a memory (32 KiB).
WORDS = (60, 600, 4_000)
MOST_CHARACTERS = 32_000
QUERIES = 200
AT_ONCE = 100


class Kind(NamedTuple):
    """Texts of one length, the questions to ask, and questions to warm up with."""

    name: str
    vectors: Callable[[], AbstractContextManager[None]]
    texts: Callable[[int, int], Iterable[str]]
    queries: Sequence[str]
    warm: Sequence[str]


def main() -> None:
    options = _options()
    options.work.mkdir(parents=True, exist_ok=True)
    kinds = [
        Kind("made up", quick_vectors, long_memories, queries(QUERIES), queries(QUERIES, seed=12))
    ]
    if options.data is not None:
        kinds.append(_chats(options.data))
    result: dict[str, Any] = {"manifest": manifest(), "memories": options.memories}
    for kind in kinds:
        result[f"words a memory, {kind.name}"] = figures = _of_kind(options, kind)
        print(kind.name, json.dumps(figures, indent=1))
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _chats(data: Path) -> Kind:
    dataset = read_locomo(data)
    asked = [query.text for query in dataset.queries]
    random.Random(5).shuffle(asked)
    return Kind(
        "chats",
        nullcontext,
        partial(_stretches, dataset.documents),
        asked[:QUERIES],
        asked[QUERIES : 2 * QUERIES],
    )


def _stretches(turns: Sequence[Document], count: int, words: int) -> Iterator[str]:
    for number in range(count):
        start = number * len(turns) // count
        scope, taken, length = turns[start].scope, list[str](), 0
        for turn in (one for one in (*turns[start:], *turns[:start]) if one.scope == scope):
            taken.append(turn.text)
            length += len(turn.text.split())
            if length >= words:
                break
        yield "\n".join(taken)[:MOST_CHARACTERS]


def _of_kind(options: argparse.Namespace, kind: Kind) -> dict[str, Any]:
    with ExitStack() as opened:
        stores = {
            words: opened.enter_context(
                Trivet.open(_built(options, kind, words), background=False, rerank="off")
            )
            for words in WORDS
        }
        return _measure(stores, kind)


def _built(options: argparse.Namespace, kind: Kind, words: int) -> Path:
    path: Path = (
        options.work / f"lengths-{kind.name.replace(' ', '-')}-{options.memories}-{words}.db"
    )
    with kind.vectors(), Trivet.open(path, background=False, changes="off") as trivet:
        texts = list(kind.texts(options.memories, words))
        for start in range(sum(trivet.stats().memories.values()), len(texts), AT_ONCE):
            trivet.remember_many({"content": text} for text in texts[start : start + AT_ONCE])
            trivet.drain()
    return path


def _measure(stores: dict[int, Trivet], kind: Kind) -> dict[str, Any]:
    embedder = load("bundled")
    assert embedder is not None
    bare: list[float] = []
    times: dict[int, dict[str, list[float]]] = {words: {} for words in stores}
    for trivet in stores.values():
        for query in kind.warm:  # A word's posting lists are read on its first use.
            trivet.recall(query)
    for query in kind.queries:  # Each question is new, so its vector must be computed.
        began = time.perf_counter()
        embedder.embed_query(f"{query} again")
        bare.append((time.perf_counter() - began) * 1000)
        for words, trivet in stores.items():
            answer = trivet.recall(query)
            for stage, took in {"recall": answer.took_ms, **answer.stages_ms}.items():
                times[words].setdefault(stage, []).append(took)
    one = statistics.median(bare)
    medians = {
        words: {stage: statistics.median(of) for stage, of in stages.items()}
        for words, stages in times.items()
    }
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--memories", type=int, default=500)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "trivet-speed")
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "long_memories.json"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
