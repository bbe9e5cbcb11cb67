"""The worker in the background: nobody who asks waits for it."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from support.waiting import happened
from trivet import Trivet
from trivet.models.embed.onnx import OnnxEmbedder


@pytest.mark.skipif(
    sys.platform != "linux", reason="threads have a priority of their own on Linux alone"
)
def test_the_worker_gives_way_to_callers(path: Path) -> None:
    seen: list[int] = []
    told = threading.Event()

    def work() -> None:
        seen.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        told.set()

    with Trivet.open(path, embedder="none", background=False) as trivet:
        trivet.engine.worker._start("trivet-worker", work, None, threading.Event())
        happened(told)
    assert seen[0] > os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_one_text_after_the_other_is_embedded_while_somebody_recalls(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several at a time take every core, and the recall would have none."""
    at_once: list[int] = []
    embed = OnnxEmbedder.embed_documents

    def seen(embedder: OnnxEmbedder, texts: Sequence[str]) -> NDArray[np.float32]:
        at_once.append(len(texts))
        return embed(embedder, texts)

    with Trivet.open(path, background=False) as trivet:
        trivet.remember_many(
            {"content": text} for text in ("The ferry is late.", "The bakery is shut.")
        )
        trivet.remember_many(
            {"content": text} for text in ("The pool is warm.", "The choir meets here.")
        )
        monkeypatch.setattr(OnnxEmbedder, "embed_documents", seen)
        trivet.engine.store.upkeep.rebuild_vectors(trivet.engine.embedding.move())
        trivet.drain()
        assert at_once == [4]
        trivet.engine.store.upkeep.rebuild_vectors(trivet.engine.embedding.move())
        with trivet.engine.load.recall():
            trivet.drain()
        assert at_once == [4, 1, 1, 1, 1]
        assert trivet.stats().not_embedded == 0
