"""One store with all turns of LoCoMo: disk, memory and, on an idle machine, speed."""

from __future__ import annotations

import shutil
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from peers.products import Arm
from peers.quality import COUNT, Bench, add, messages
from trivet.lab.datasets.dataset import Dataset

QUERIES = 300
WARM = 20
SINGLE_WRITES = 100


def loaded(bench: Bench, arm: Arm, dataset: Dataset) -> dict[str, Any]:
    """Load in batches, the last documents one by one; then wait for background work."""
    store = bench.work / "stores" / arm.name / "load"
    shutil.rmtree(store, ignore_errors=True)
    many, single = dataset.documents[:-SINGLE_WRITES], dataset.documents[-SINGLE_WRITES:]
    with bench.driver(arm, store) as driver:
        seconds = add(driver, bench.vectors, many)
        rows = messages(bench.vectors, single)
        writes = [driver.ask("add", documents=[row])["seconds"] for row in rows]
        driver.ask("finish")
        driver.ask("settle")
        asked = [
            query.text for query in dataset.queries[:: len(dataset.queries) // (QUERIES + WARM)]
        ]
        vectors = bench.vectors.packed(asked)
        searches = [
            driver.ask("search", text=text, vector=vector, count=COUNT)["seconds"]
            for text, vector in zip(asked, vectors, strict=True)
        ][WARM:]
        memory = driver.resident_bytes()
        driver.ask("close")
    embedding = _embedding_seconds(bench, asked)[WARM:] if arm.given else [0.0] * len(searches)
    whole = [search + embed for search, embed in zip(searches, embedding, strict=True)]
    return {
        "disk_bytes": size(store),
        "memory_bytes": memory,
        "times": {
            "writes_per_second_in_batches": round(len(many) / seconds, 1),
            "single_write_ms": spread(writes),
            "recall_ms": spread(searches) if arm.given else None,
            "recall_with_embedding_ms": spread(whole),
        },
    }


def _embedding_seconds(bench: Bench, texts: Sequence[str]) -> list[float]:
    taken = []
    for text in texts:
        began = time.perf_counter()
        bench.vectors.embedder.embed_query(text)
        taken.append(time.perf_counter() - began)
    return taken


def spread(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    high = ordered[min(len(ordered) - 1, int(len(ordered) * 0.95))]
    return {"p50": round(statistics.median(ordered) * 1000, 2), "p95": round(high * 1000, 2)}


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
