"""The background worker does not make callers wait."""

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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has per-thread priorities")
def test_worker_has_lower_priority_than_callers(path: Path) -> None:
    priorities: list[int] = []
    reported = threading.Event()

    def work() -> None:
        priorities.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        reported.set()

    with Trivet.open(path, embedder="none", background=False) as trivet:
        trivet.engine.worker._start("trivet-worker", work, None, trivet.engine.worker._woken)
        happened(reported)
    assert priorities[0] > os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def test_worker_embeds_one_text_at_a_time_during_recalls(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch takes every core and leaves none for the recall."""
    batch_sizes: list[int] = []
    embed = OnnxEmbedder.embed_documents

    def recording_embed(embedder: OnnxEmbedder, texts: Sequence[str]) -> NDArray[np.float32]:
        batch_sizes.append(len(texts))
        return embed(embedder, texts)

    with Trivet.open(path, background=False) as trivet:
        trivet.remember_many(
            {"content": text} for text in ("The ferry is late.", "The bakery is shut.")
        )
        trivet.remember_many(
            {"content": text} for text in ("The pool is warm.", "The choir meets here.")
        )
        monkeypatch.setattr(OnnxEmbedder, "embed_documents", recording_embed)
        trivet.engine.store.upkeep.rebuild_vectors(trivet.engine.embedding.move())
        trivet.drain()
        assert batch_sizes == [4]
        trivet.engine.store.upkeep.rebuild_vectors(trivet.engine.embedding.move())
        with trivet.engine.load.recall():
            trivet.drain()
        assert batch_sizes == [4, 1, 1, 1, 1]
        assert trivet.stats().not_embedded == 0
