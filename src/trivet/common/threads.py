"""How many cores there are to work on.

Lets msgspec learn each type in one thread before any thread uses it.

msgspec learns a type when it is first decoded, and two threads that begin with the same one at the same time crash the
process (0.22: the one uses what the other has not filled in yet).
"""

from __future__ import annotations

import os
import threading
from typing import TypeVar

import msgspec

MAX_WORKER_THREADS = 4


def cores() -> int:
    """Those that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def worker_cores() -> int:
    """Those that one piece of work may take, bounded so that a background job leaves a large machine to its owner."""
    return min(cores(), MAX_WORKER_THREADS)


T = TypeVar("T")

_prepared: set[object] = set()
_preparing = threading.Lock()


def prepared_type(kind: type[T]) -> type[T]:
    """The type itself, once msgspec knows it and all that it is made of."""
    if kind not in _prepared:
        with _preparing:
            msgspec.json.Decoder(kind)
            _prepared.add(kind)
    return kind
