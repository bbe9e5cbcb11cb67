"""Export as JSON Lines. What a damaged store cannot read is left out and named in the last line."""

from __future__ import annotations

from collections.abc import Iterator

from trivet.errors import Damaged, NotFound
from trivet.memory.engine import Engine
from trivet.memory.export_format import FORMAT, Checksum, Header, LastLine, LinkLine, MemoryLine, line_of
from trivet.types import Memory


def export_lines(engine: Engine, include_sensitive: bool) -> Iterator[str]:
    """The lines of an export, without line ends. Sensitive memories leave the store only if asked for."""
    damaged: dict[str, None] = {}
    kept: set[str] = set()
    left_out = 0
    for memory in engine.store.memories.readable(damaged.setdefault):
        if include_sensitive or not memory.sensitive:
            kept.add(memory.id)
        else:
            left_out += 1
    links = [link for link in engine.store.links.readable(damaged.setdefault) if {link.source, link.target} <= kept]
    yield line_of(Header(FORMAT, len(kept), len(links), left_out))
    checksum, count = Checksum(), 0
    for memory in engine.store.memories.readable(damaged.setdefault):
        line = _memory_line(engine, memory, include_sensitive, damaged) if memory.id in kept else None
        if line is not None:
            text = line_of(line)
            checksum.add(text)
            count += 1
            yield text
    for link in links:
        text = line_of(LinkLine(link))
        checksum.add(text)
        yield text
    yield line_of(LastLine(FORMAT, count, len(links), str(checksum), tuple(damaged)))


def _memory_line(
    engine: Engine, memory: Memory, include_sensitive: bool, damaged: dict[str, None]
) -> MemoryLine | None:
    """None where another process has purged the memory since the export began."""
    try:
        history = engine.store.memories.revisions(memory.id)
    except NotFound:
        return None
    except Damaged:  # the memory as it is now is worth having without it
        damaged.setdefault(f"the history of {memory.id}")
        return MemoryLine(memory)
    # A memory that is no longer sensitive may have been so before, and is shared with others as it is now.
    if not include_sensitive or engine.viewer not in (None, memory.owner):
        history = tuple(revision for revision in history if not revision.memory.sensitive)
    return MemoryLine(memory, history)
