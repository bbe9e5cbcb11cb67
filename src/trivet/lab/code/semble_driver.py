"""Runs semble for a comparison, in its own environment, so it imports no Trivet.

Each line of input is a job, {"folder": ..., "texts": [...]}, answered by a line. The first output
line has semble's version and whether its model could be loaded.
"""

from __future__ import annotations

import json
import os
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Fail fast when the host is unreachable.
os.environ.setdefault("HF_HUB_ETAG_TIMEOUT", "5")
os.environ.setdefault("HF_HUB_DOWNLOAD_TIMEOUT", "30")

import numpy as np
from semble import SembleIndex  # type: ignore[import-not-found]
from semble.index.dense import load_model  # type: ignore[import-not-found]
from semble.index.index import _build  # type: ignore[import-not-found]
from semble.types import ContentType  # type: ignore[import-not-found]

SHOWN = 10
# semble's order depends on the number of chunks requested; fifty is best over whole trees.
CHUNKS = 50
MOST_CHUNKS = 800


class NoVectors:
    dim = 1

    def encode(self, texts: list[str], **_: Any) -> Any:
        return np.zeros((len(texts), 1), dtype=np.float32)


def has_model() -> bool:
    try:
        load_model()
    except (OSError, ValueError) as error:  # the network or the download; the report says so
        print(f"semble's model cannot be loaded: {error!r}", file=sys.stderr)
        return False
    return True


def indexed(folder: Path, model: bool) -> Any:
    """Use semble's public API, which has no switch for a missing model."""
    return (
        SembleIndex.from_path(folder)
        if model
        else _build(folder, NoVectors(), "none", (ContentType.CODE,), False)
    )


def ranked(index: Any, text: str, options: dict[str, float]) -> list[str]:
    """Rank files by best chunk; request more chunks below ten files."""
    chunks = CHUNKS
    files: dict[str, None] = {}
    while True:
        results = index.search(text, top_k=chunks, **options)
        files.update(
            {
                result.chunk.file_path: None
                for result in results
                if result.chunk.file_path not in files
            }
        )
        if len(files) >= SHOWN or len(results) < chunks or chunks >= MOST_CHUNKS:
            return list(files)
        chunks *= 2


def answer(job: dict[str, Any], model: bool) -> dict[str, Any]:
    folder = Path(job["folder"]).resolve()
    wall, processor = time.perf_counter(), time.process_time()
    index = indexed(folder, model)
    spent = {"wall_s": time.perf_counter() - wall, "processor_s": time.process_time() - processor}
    # alpha 0 turns off the dense leg: semble drops candidates without a score, so words decide.
    options = {} if model else {"alpha": 0.0}
    index.search("what is kept from the first query on", top_k=SHOWN, **options)
    walls, processors, files = [], [], []
    for text in job["texts"]:
        wall, processor = time.perf_counter(), time.process_time()
        index.search(text, top_k=SHOWN, **options)
        processors.append((time.process_time() - processor) * 1000)
        walls.append((time.perf_counter() - wall) * 1000)
        files.append(ranked(index, text, options))
    paths = {chunk.file_path for chunk in index.chunks}
    size = sum((folder / path).stat().st_size for path in paths)
    counts = {"files": len(paths), "chunks": len(index.chunks), "megabytes": size / 1e6}
    return {**spent, **counts, "ranked": files, "wall_ms": walls, "processor_ms": processors}


def main() -> None:
    answers, sys.stdout = sys.stdout, sys.stderr  # libraries must not print among the answers
    model = has_model()
    print(json.dumps({"version": version("semble"), "model": model}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), model)), file=answers, flush=True)


if __name__ == "__main__":
    main()
