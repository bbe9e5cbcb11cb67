"""What is used of every budget: memory, disk, and the tokens of the language models."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from trivet.memory.engine import Engine
from trivet.types import Budget

MEGABYTE = 2**20


def budgets(engine: Engine) -> tuple[Budget, ...]:
    settings = engine.settings
    return (
        Budget(
            name="memory of this process",
            unit="MB",
            used=_megabytes(memory_in_use()),
            allowed=settings.resident_memory_mb,  # over it the resident process ends itself
            setting="resident_memory_mb",
        ),
        disk(engine),
        Budget(
            name="language model for the graph",
            unit="tokens today",
            used=engine.store.graph.spent(),
            allowed=settings.graph_llm_tokens_a_day if settings.graph_llm else 0,
            setting="graph_llm_tokens_a_day",
        ),
        Budget(
            name="language model for capture",
            unit="tokens today",
            used=engine.store.inbox.spent(),
            allowed=settings.capture_llm_tokens_a_day if settings.capture_llm else 0,
            setting="capture_llm_tokens_a_day",
        ),
    )


def disk(engine: Engine) -> Budget:
    used = engine.store.all_memories.stats().bytes or 0  # the whole store's, whoever asks
    allowed = engine.settings.disk_budget_mb or None
    return Budget(name="store on disk", unit="MB", used=_megabytes(used), allowed=allowed, setting="disk_budget_mb")


def memory_in_use() -> int:
    """Bytes of physical memory that this process has now; on systems that do not say, its peak."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        import resource  # not everywhere

        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def _megabytes(count: int) -> float:
    return round(count / MEGABYTE, 1)
