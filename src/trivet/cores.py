"""How many cores there are to work on."""

import os

MOST_THREADS = 4


def cores() -> int:
    """Those that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def usable_cores() -> int:
    """Those that one piece of work may take, bounded so that a background job leaves a large machine to its owner."""
    return min(cores(), MOST_THREADS)
