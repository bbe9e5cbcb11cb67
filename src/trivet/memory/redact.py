"""Takes out secrets that were stored before there was a guard, or while it was off; from all revisions too."""

from __future__ import annotations

from collections import Counter

import msgspec

from trivet.errors import NotFound
from trivet.memory.engine import Engine
from trivet.memory.remember import document_of
from trivet.memory.sealing import write_sealed
from trivet.store.records import Beside, Entry
from trivet.types import LOCAL, Memory, Progress, Redacted, Revision


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
    """Redacts a memory, its revisions and what lies beside these in place, and counts the sealed secrets by kind."""
    beside = engine.store.branches.beside(memory)
    revisions = engine.store.memories.revisions(memory.id)
    history = (*revisions, *(_as_revision(one.memory) for one in beside))
    protected = engine.guard.protect(
        memory, memory.revision, lambda: engine.store.secrets.of(memory.id), history, refuse=False
    )
    if protected.memory == memory and protected.history == history:
        return Counter()
    past, said = protected.history[: len(revisions)], protected.history[len(revisions) :]
    clean = tuple(_cleaned(one, now.memory) for one, now in zip(beside, said, strict=True))
    entry = Entry(protected.memory, document_of(protected.memory), past, protected.secrets, clean)
    write_sealed(engine, [entry], lambda entries: engine.store.memories.scrub(entries[0]))
    engine.worker.wake()
    return Counter(sealed.kind for sealed in protected.secrets)


def _as_revision(memory: Memory) -> Revision:
    return Revision(revision=memory.revision, changed_at=memory.updated_at, action="", memory=memory)


def _cleaned(one: Beside, memory: Memory) -> Beside:
    document = document_of(memory)
    return msgspec.structs.replace(one, memory=memory, terms=" ".join((*document.content, *document.title)))
