"""The worker in the background: nobody who asks waits for it."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from support.waiting import happened
from trivet import Trivet


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority of their own on Linux alone")
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
