r"""Measure Trivet's speed, as multiples of one bare query embedding in the same run.

python benchmarks/speed.py --sizes 1000 10000 100000 --work /tmp/trivet-speed \
    --output benchmarks/results/speed.json

Stores are made once and kept; 100,000 memories take about ten minutes on two cores. A million would
take hours to embed: `--quick` makes vectors from words (`quick_vectors.py`), skips near-duplicates,
and takes one.

python benchmarks/speed.py --quick --sizes 1000000 --output benchmarks/results/million.json
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from importlib.metadata import version
from pathlib import Path
from typing import Any
from unittest.mock import patch

import psutil

from quick_vectors import quick_vectors
from texts import memories, named_queries, queries
from trivet import Trivet
from trivet.memory import remember
from trivet.models import WEIGHTS
from trivet.models.embed import load
from trivet.models.rerank.registry import PRESETS, RerankSpec
from trivet.models.rerank.registry import load as load_reranker

BULK = 1_500
QUERIES = 300
COLD_RUNS = 15
RERANKED = 60
PAIRS = 20
SENTENCE = "the staging database of the harbour office listens on port and is copied every night to a shelf in Bremen"
# What any program does to embed a query with this model and only the needed libraries.
BARE = """
import numpy, onnxruntime, tokenizers
folder, query = {folder!r}, {query!r}
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(f"{{folder}}/model.onnx", options, providers=["CPUExecutionProvider"])
found = tokenizers.Tokenizer.from_file(f"{{folder}}/tokenizer.json").encode(query)
ids = numpy.array([found.ids])
feed = {{"input_ids": ids, "attention_mask": numpy.ones_like(ids), "token_type_ids": numpy.zeros_like(ids)}}
session.run(None, {{put.name: feed[put.name] for put in session.get_inputs()}})
"""
# The same with Trivet's own code, which opens less.
OURS = "from trivet.models.embed import load; load('bundled').embed_query({query!r})"

Figures = dict[str, Any]


def main() -> None:
    options = _options()
    options.work.mkdir(parents=True, exist_ok=True)
    result: Figures = {
        "manifest": manifest(
            f"speed.py --sizes {' '.join(map(str, options.sizes))}", queries=QUERIES
        ),
        "sizes": {},
    }
    for size in options.sizes:
        path = options.work / f"{size}.db"
        _build(path, size, options.quick)
        index = _index_file(path)
        print(f"{size:,} memories", flush=True)
        result["sizes"][str(size)] = {**_measure_size(path), "index file": index}
        _show(result["sizes"][str(size)])
    result["rerankers"] = _rerankers()
    print("rerankers", result["rerankers"])
    result["bulk"] = _bulk(options.work)
    print("bulk", result["bulk"])
    result["cold"] = {str(size): _cold(options.work / f"{size}.db") for size in options.sizes}
    print("cold", result["cold"])
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")


def _measure_size(path: Path) -> Figures:
    """Measure in a separate process, so its memory is separate too."""
    answer = subprocess.run(
        [sys.executable, __file__, "--measure", str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    figures: Figures = json.loads(answer.stdout)
    return figures


def measure(path: Path) -> Figures:
    """Alternate recalls and bare embeddings, so that noise affects both alike."""
    embedder = load("bundled")
    assert embedder is not None
    asked = queries(QUERIES)
    times: dict[str, list[float]] = {"embedding": []}
    with Trivet.open(path, background=False) as trivet:
        trivet.recall("load the model and the indexes")
        for query in asked:  # Posting lists are read on a word's first use and then cached.
            times.setdefault("recall, words new to the process", []).append(
                trivet.recall(query).took_ms
            )
        for number, query in enumerate(asked):
            # As long as the next query, but different, so neither finds the other's cached work.
            other = f"{query} {number + 500}"
            times["embedding"].append(
                _milliseconds(lambda other=other: embedder.embed_query(other))  # type: ignore[misc]
            )
            answer = trivet.recall(f"{query} {number}")
            times.setdefault("recall", []).append(answer.took_ms)
            # Other words, whose lists the previous recall has not just read.
            plain = trivet.recall(f"{asked[number - QUERIES // 2]} {number + 2_000}", rerank="off")
            times.setdefault("recall, rerank off", []).append(plain.took_ms)
            for stage, took in answer.stages_ms.items():
                times.setdefault(f"stage {stage}", []).append(took)
            for leg in answer.health.legs:
                times.setdefault(f"leg {leg.leg}", []).append(leg.took_ms)
        times["dense search without embedding"] = _dense_search_only(trivet, asked)
        times["leg graph, of queries that name something"] = _named_walks(trivet)
        processor = _processor_time(trivet, asked)
        for name in PRESETS:
            times[f"recall, rerank {name}"] = _reranked(trivet, name, asked)
        graph = _graph(trivet)
    bare = statistics.median(times["embedding"])
    figures: Figures = {name: _summary(values, bare) for name, values in times.items()}
    figures["graph"] = graph
    figures["processor_ms"] = round(processor, 2)
    figures["resident_mb"] = round(psutil.Process().memory_info().rss / 2**20)
    figures["store_mb"] = round(path.stat().st_size / 2**20)
    return figures


def _dense_search_only(trivet: Trivet, asked: Sequence[str]) -> list[float]:
    """Repeat the recall: its query vector is cached, so the dense leg is only the search."""
    times = []
    for number, query in list(enumerate(asked))[-200:]:
        answer = trivet.recall(f"{query} {number}", recipe="legs(dense)")
        times.append(answer.health.legs[0].took_ms)
    return times


def _reranked(trivet: Trivet, name: Any, asked: Sequence[str]) -> list[float]:
    """Use new queries: vectors of earlier ones would be cached."""
    trivet.recall("load the reranker", rerank=name)
    some = enumerate(asked[:RERANKED], 1_000 * (3 + [*PRESETS].index(name)))
    return [trivet.recall(f"{query} {number}", rerank=name).took_ms for number, query in some]


def _processor_time(trivet: Trivet, asked: Sequence[str]) -> float:
    used = []
    for number, query in enumerate(asked):
        began = time.process_time()
        trivet.recall(f"{query} {number + 20_000}", rerank="off")
        used.append((time.process_time() - began) * 1000)
    return statistics.median(used)


def _named_walks(trivet: Trivet) -> list[float]:
    """Count only recalls whose graph had a starting point; the others take one lookup."""
    asked = named_queries(QUERIES, sum(trivet.stats().memories.values()))
    legs = [
        leg for query in asked for leg in trivet.recall(query).health.legs if leg.leg == "graph"
    ]
    return [leg.took_ms for leg in legs if leg.candidates]


def _graph(trivet: Trivet) -> Figures:
    living: Any = trivet.engine.store.graph._network
    network = living.fresh()
    loads = [_milliseconds(living._load) for _ in range(3)]
    keys = list(range(1, 101))
    taken_in = [_milliseconds(lambda key=key: living._take_in({key})) for key in keys]  # type: ignore[misc]
    return {
        "edges": network.edges,
        "bytes_an_edge": round(network.bytes / max(1, network.edges), 1),
        "load_ms": round(statistics.median(loads)),
        "change_ms": round(statistics.median(taken_in), 3),
    }


def _rerankers() -> Figures:
    embedder = load("bundled")
    assert embedder is not None
    words = SENTENCE.split()
    texts = [
        " ".join(words[(number + at) % len(words)] for at in range(54)) for number in range(PAIRS)
    ]
    query = "which port does the staging database of the harbour listen on"
    figures: Figures = {}
    for name in PRESETS:
        reranker = load_reranker(RerankSpec(name))
        reranker.score(query, texts, float("inf"))
        bare, read = [], []
        for number in range(RERANKED):
            bare.append(
                _milliseconds(lambda number=number: embedder.embed_query(f"{query} {number}"))  # type: ignore[misc]
            )
            read.append(_milliseconds(lambda: reranker.score(query, texts, float("inf"))))  # noqa: B023
        figures[name] = _summary(read, statistics.median(bare))
    return figures


def _bulk(work: Path) -> Figures:
    """Compare storing and embedding with embedding only, three turns each.

    `drain` also compares the latest 64 memories with their neighbors, so it is measured with
    `changes = off` too.
    """
    embedder = load("bundled")
    assert embedder is not None
    texts = list(memories(BULK, seed=99))
    embedder.embed_documents(texts[:50])
    bare, stored, not_compared = [], [], []
    for turn in range(3):
        bare.append(_milliseconds(lambda: embedder.embed_documents(texts)))
        path = Path(tempfile.mkdtemp(dir=work)) / f"bulk{turn}.db"
        stored.append(_milliseconds(lambda path=path: _store(path, texts)))  # type: ignore[misc]
        other = path.with_name(f"bulk{turn}-not-compared.db")
        not_compared.append(_milliseconds(lambda path=other: _store(path, texts, changes="off")))  # type: ignore[misc]
    rates = {
        "bare_per_second": BULK / statistics.median(bare) * 1000,
        "stored_per_second": BULK / statistics.median(stored) * 1000,
    }
    return {
        **{name: round(rate, 1) for name, rate in rates.items()},
        "ratio": round(statistics.median(bare) / statistics.median(stored), 3),
        "ratio_not_compared": round(statistics.median(bare) / statistics.median(not_compared), 3),
    }


def _store(path: Path, texts: Sequence[str], **settings: Any) -> None:
    """Store as a user would: the worker embeds in the background, and we wait at the end."""
    with Trivet.open(path, **settings) as trivet:
        for start in range(0, len(texts), 100):
            trivet.remember_many({"content": text} for text in texts[start : start + 100])
        while trivet.stats().not_embedded:
            trivet.drain()


def _cold(path: Path) -> Figures:
    query = queries(1, seed=5)[0]
    commands = {
        "bare": [sys.executable, "-c", BARE.format(folder=str(WEIGHTS / "embedder"), query=query)],
        "embedding alone": [sys.executable, "-c", OURS.format(query=query)],
        "recall": [
            sys.executable,
            "-m",
            "trivet.cli",
            "--path",
            str(path),
            "recall",
            query,
            "--json",
        ],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(COLD_RUNS):
        for name, command in commands.items():
            times[name].append(_process(command))
    middle = {name: statistics.median(found) for name, found in times.items()}
    figures: Figures = {f"{name}_ms": round(took) for name, took in middle.items()}
    return {**figures, "ratio": round(middle["recall"] / middle["bare"], 2)}


def _process(command: Sequence[str]) -> float:
    return _milliseconds(lambda: subprocess.run(command, check=True, stdout=subprocess.DEVNULL))


def _build(path: Path, size: int, quick: bool) -> None:
    with ExitStack() as while_building:
        if quick:
            while_building.enter_context(quick_vectors())
            while_building.enter_context(
                patch.object(remember, "near_duplicates", lambda _, entries: ((),) * len(entries))
            )
        # The measurements need no comparison of memories, which takes hours on large stores.
        trivet = while_building.enter_context(Trivet.open(path, background=False, changes="off"))
        have = sum(trivet.stats().memories.values())
        texts = list(memories(size))
        for start in range(have, size, 1000):
            trivet.remember_many({"content": text} for text in texts[start : start + 1000])
            trivet.drain()
            print(
                f"\r  building {path.name}: {min(start + 1000, size):,} of {size:,}",
                end="",
                file=sys.stderr,
            )
        trivet.drain()


def _index_file(path: Path) -> Figures:
    command = [sys.executable, __file__, "--write-index", str(path)]
    figures: Figures = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )
    return figures


def write_index(path: Path) -> Figures:
    with Trivet.open(path, background=False) as trivet:
        files = trivet.engine.store._database.index_files
        files.discard()
        took = _milliseconds(trivet.engine.store.upkeep.renew_index)
        written = sum(file.stat().st_size for file in files.folder.glob("*"))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    return {"seconds": round(took / 1000, 1), "mb": round(written / 2**20), "peak_mb": round(peak)}


def _summary(values: Sequence[float], bare: float) -> Figures:
    ordered = sorted(values)
    middle, high = statistics.median(ordered), ordered[int(len(ordered) * 0.95)]
    return {
        "p50_ms": round(middle, 3),
        "p95_ms": round(high, 3),
        "p50_x": round(middle / bare, 2),
        "p95_x": round(high / bare, 2),
    }


def _show(figures: Figures) -> None:
    for name, values in figures.items():
        text = (
            "  ".join(f"{key} {value}" for key, value in values.items())
            if isinstance(values, dict)
            else values
        )
        print(f"  {name:32} {text}")


def _milliseconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return (time.perf_counter() - started) * 1000


def manifest(command: str, **more: Any) -> Figures:
    commit = subprocess.run(
        ["git", "rev-parse", "HEAD"], capture_output=True, text=True
    ).stdout.strip()
    packages = ("trivet", "numpy", "onnxruntime", "tokenizers", "msgspec")
    return {
        "command": f"python benchmarks/{command}",
        "commit": commit,
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": {package: version(package) for package in packages},
        **more,
        "date": time.strftime("%Y-%m-%d"),
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "trivet-speed")
    parser.add_argument(
        "--output", type=Path, default=Path(__file__).parent / "results" / "speed.json"
    )
    parser.add_argument(
        "--quick", action="store_true", help="without the model, for stores too large to embed"
    )
    parser.add_argument("--measure", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--write-index", type=Path, help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    if (given := _options()).measure:
        print(json.dumps(measure(given.measure)))
    elif given.write_index:
        print(json.dumps(write_index(given.write_index)))
    else:
        main()
