"""Takes out secrets that were stored before there was a guard, or while it was off; from all revisions too."""

from __future__ import annotations

from collections import Counter

from trivet.errors import NotFound
from trivet.memory.engine import Engine
from trivet.memory.remember import document_of
from trivet.memory.sealing import write_sealed
from trivet.store.records import Entry
from trivet.types import LOCAL, Memory, Progress, Redacted


def redact_all(engine: Engine, progress: Progress | None = None) -> Redacted:
    """Redacts every memory and its revisions. If it is interrupted, it can be run again."""
    memories, secrets = 0, Counter[str]()
    for memory in engine.store.memories.everything():
        if engine.follows and memory.owner != LOCAL:
            continue  # its owner's to redact; it comes redacted
        try:
            found = redact_one(engine, memory)
        except NotFound:  # purged by another process meanwhile
            continue
        memories += bool(found)
        secrets.update(found)
        if progress is not None:
            progress(1)
    return Redacted(memories=memories, secrets=dict(secrets), pending=engine.store.upkeep.finish_erasing())


def redact_one(engine: Engine, memory: Memory) -> Counter[str]:
    """Redacts a memory and all its revisions in place, and counts the sealed secrets by kind."""
    history = engine.store.memories.revisions(memory.id)
    protected = engine.guard.protect(
        memory, memory.revision, lambda: engine.store.secrets.of(memory.id), history, refuse=False
    )
    if protected.memory == memory and protected.history == history:
        return Counter()
    entry = Entry(protected.memory, document_of(protected.memory), protected.history, protected.secrets)
    write_sealed(engine, [entry], lambda entries: engine.store.memories.scrub(entries[0]))
    engine.worker.wake()
    return Counter(sealed.kind for sealed in protected.secrets)
