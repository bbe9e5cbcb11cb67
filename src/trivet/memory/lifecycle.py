"""What happens to a stored memory: forget, restore, purge, link, history and redaction."""

from __future__ import annotations

import difflib
from collections import Counter
from datetime import datetime

import msgspec

from trivet import contract
from trivet.common.clock import stamp
from trivet.common.ids import check_id
from trivet.errors import Conflict, NotFound
from trivet.memory.engine import Engine
from trivet.memory.perform import complete_ids, note_reveal
from trivet.memory.remember import check_memory, document_of, join, rewrite
from trivet.memory.sealed_secrets import write_with_current_key
from trivet.secrets.masking import masked
from trivet.store.records import Entry, PendingEdit
from trivet.types import LOCAL, Link, Memory, Progress, Purged, Redacted, Revision, Source


def forget(engine: Engine, request: contract.Forget) -> Memory:
    memory = engine.store.memories.get_for_change(check_id(request.id), "forget")
    if memory.state == "deleted":
        return masked(memory)
    return masked(rewrite(engine, msgspec.structs.replace(memory, state="deleted"), "forget"))


def restore(engine: Engine, request: contract.Restore) -> Memory:
    """Restore a revision, by default the last living one, as a new revision."""
    current = engine.store.memories.get_for_change(check_id(request.id), "restore")
    # Checked first, so that a refused request writes nothing.
    restored = _restored(engine, current, request.revision)
    # An old revision may hold secrets from before the guard.
    if engine.settings.secrets == "redact" and redact_one(engine, current):
        restored = _restored(engine, engine.store.memories.get(current.id), request.revision)
    return masked(rewrite(engine, restored, "restore"))


def _restored(engine: Engine, current: Memory, revision: int | None) -> Memory:
    revisions = engine.store.memories.revisions(current.id)
    if revision is None:
        if current.state != "deleted":
            raise Conflict(
                f"Memory {current.id} is not forgotten. To go back, give the revision to restore."
            )
        living = (old.memory for old in reversed(revisions) if old.memory.state != "deleted")
        earlier = next(living, current)
    else:
        earlier = _revision(revisions, revision).memory
    state = "archived" if earlier.state == "archived" else "active"
    # An old revision must not expose what became sensitive.
    sensitive = earlier.sensitive or current.sensitive
    restored = msgspec.structs.replace(
        earlier, state=state, sensitive=sensitive, revision=current.revision, owner=current.owner
    )
    check_memory(engine, restored)
    engine.guard.check_scope(restored.scope)
    return restored


def purge(engine: Engine, request: contract.Purge) -> Purged:
    """Remove a memory from all answers now, and from the files soon."""
    id = check_id(request.id)
    engine.store.memories.purge(id)
    upkeep = engine.store.upkeep
    if not engine.worker.runs:
        return Purged(id=id, pending=upkeep.finish_erasing())
    engine.worker.wake()
    return Purged(id=id, pending=upkeep.pending_erasure())


def link(engine: Engine, request: contract.LinkRequest) -> Link:
    return join(engine, request.source, request.kind, request.target)


def unlink(engine: Engine, request: contract.UnlinkRequest) -> None:
    source, target = check_id(request.source, "source"), check_id(request.target, "target")
    engine.store.links.remove(source, request.kind, target)


def links(engine: Engine, request: contract.LinksRequest) -> tuple[Link, ...]:
    memory = engine.store.memories.get(check_id(request.id))
    return engine.store.links.touching([memory.id])


def history(engine: Engine, request: contract.History) -> tuple[Revision, ...]:
    """Return the revisions, all masked if the memory is sensitive now."""
    id = check_id(request.id)
    current = engine.store.memories.get(id)
    return tuple(
        msgspec.structs.replace(
            revision,
            memory=masked(
                msgspec.structs.replace(
                    revision.memory,
                    sensitive=current.sensitive or revision.memory.sensitive,
                    owner=current.owner,
                ),
                request.reveal,
                engine.viewer,
            ),
        )
        for revision in engine.store.memories.revisions(id)
    )


def diff(engine: Engine, id: str, older: int, newer: int, reveal: bool) -> str:
    engine.demand("read")
    request = complete_ids(engine, contract.check(contract.History, {"id": id, "reveal": reveal}))
    if reveal:
        note_reveal(engine, "diff", request.id)
    revisions = history(engine, request)
    before, after = (_revision(revisions, number).memory for number in (older, newer))
    return difference(before, after, f"revision {older}", f"revision {newer}")


def difference(before: Memory, after: Memory, older: str, newer: str) -> str:
    return "\n".join(
        difflib.unified_diff(_as_text(before), _as_text(after), older, newer, lineterm="")
    )


def _as_text(memory: Memory) -> list[str]:
    lines = [
        f"{field}: {_shown(getattr(memory, field))}"
        for field in memory.__struct_fields__
        if field not in _NOT_SHOWN
    ]
    return [*lines, "content:", *memory.content.splitlines()]


def _shown(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return stamp(value)
    if isinstance(value, Source):
        return " ".join(
            str(part) for part in (value.uri, value.start_line, value.end_line) if part is not None
        )
    return ", ".join(value) if isinstance(value, tuple) else value


_NOT_SHOWN = ("id", "content", "revision", "updated_at")


def _revision(revisions: tuple[Revision, ...], number: int) -> Revision:
    for revision in revisions:
        if revision.revision == number:
            return revision
    known = ", ".join(str(revision.revision) for revision in revisions)
    raise NotFound(f"There is no revision {number} of this memory. Its revisions: {known}.")


def redact_all(engine: Engine, progress: Progress | None = None) -> Redacted:
    """Redact every memory and its revisions; an interrupted run can be repeated."""
    memories, secrets = 0, Counter[str]()
    for memory in engine.store.memories.everything():
        if engine.follows and memory.owner != LOCAL:
            continue  # its owner redacts it, and the change arrives by sync
        try:
            found = redact_one(engine, memory)
        except NotFound:  # purged by another process meanwhile
            continue
        memories += bool(found)
        secrets.update(found)
        if progress is not None:
            progress(1)
    return Redacted(
        memories=memories, secrets=dict(secrets), pending=engine.store.upkeep.finish_erasing()
    )


def redact_one(engine: Engine, memory: Memory) -> Counter[str]:
    """Redact a memory, its revisions and pending edits; count secrets by kind."""
    pending = engine.store.branches.beside(memory)
    revisions = engine.store.memories.revisions(memory.id)
    history = (*revisions, *(_as_revision(edit.memory) for edit in pending))
    protected = engine.guard.protect(
        memory, memory.revision, lambda: engine.store.secrets.of(memory.id), history, refuse=False
    )
    if protected.memory == memory and protected.history == history:
        return Counter()
    past, redacted = protected.history[: len(revisions)], protected.history[len(revisions) :]
    clean = tuple(_cleaned(edit, new.memory) for edit, new in zip(pending, redacted, strict=True))
    entry = Entry(protected.memory, document_of(protected.memory), past, protected.secrets, clean)
    write_with_current_key(engine, [entry], lambda entries: engine.store.memories.scrub(entries[0]))
    engine.worker.wake()
    return Counter(sealed.kind for sealed in protected.secrets)


def _as_revision(memory: Memory) -> Revision:
    return Revision(
        revision=memory.revision, changed_at=memory.updated_at, action="", memory=memory
    )


def _cleaned(edit: PendingEdit, memory: Memory) -> PendingEdit:
    document = document_of(memory)
    return msgspec.structs.replace(
        edit, memory=memory, terms=" ".join((*document.content, *document.title))
    )
