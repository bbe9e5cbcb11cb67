"""Core counts, and a lock around msgspec's first use of a type.

Two threads that first use the same type at once crash the process (msgspec 0.22).
"""

from __future__ import annotations

import os
import threading
from typing import TypeVar

import msgspec

MAX_WORKER_THREADS = 4


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def worker_cores() -> int:
    """Return the number of cores that one task may use."""
    return min(cores(), MAX_WORKER_THREADS)


T = TypeVar("T")

_prepared: set[object] = set()
_preparing = threading.Lock()


def prepared_type(kind: type[T]) -> type[T]:
    """Return the type after msgspec has inspected it."""
    if kind not in _prepared:
        with _preparing:
            msgspec.json.Decoder(kind)
            _prepared.add(kind)
    return kind
