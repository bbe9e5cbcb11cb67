"""What keeps words from being seen: masks of sensitive memories, detection of secrets, and their encryption."""

from __future__ import annotations

import msgspec

from trivet.types import Memory

MASK = "[sensitive; reveal it to read]"


def masked(memory: Memory, reveal: bool = False, viewer: str | None = None) -> Memory:
    """The memory as it may leave Trivet: a sensitive one without its words, unless its owner reveals it."""
    if not memory.sensitive or (reveal and viewer in (None, memory.owner)):
        return memory
    return msgspec.structs.replace(
        memory, content=MASK, title=MASK if memory.title else None, expanded_keywords=(), source=None
    )
