"""The worker in the background: nobody who asks waits for it."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from trivet import Trivet


@pytest.mark.skipif(sys.platform != "linux", reason="threads have a priority of their own on Linux alone")
def test_the_worker_gives_way_to_callers(path: Path) -> None:
    with Trivet.open(path, embedder="none") as trivet:
        trivet.remember("The worker runs.")
        trivet.drain()
        workers = [thread.native_id for thread in threading.enumerate() if thread.name == "trivet-worker"]
        assert workers
        own = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        assert all(os.getpriority(os.PRIO_PROCESS, one or 0) > own for one in workers)
