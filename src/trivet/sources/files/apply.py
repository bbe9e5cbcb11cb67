"""One file into the store, in one transaction: all of its changes are stored, or none."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from trivet import contract
from trivet.clock import stamp
from trivet.memory.engine import Engine
from trivet.memory.remember import guard, new_memory, rewrite
from trivet.memory.sealing import add_entries
from trivet.sources.files.matching import PreparedPart
from trivet.sources.files.prepare import ParsedFile, default_category, stamp_of
from trivet.sources.files.vault import Vault
from trivet.store.records import Entry, KnownFile, KnownPart
from trivet.types import Memory

# Fields that always follow the file, also where it leaves them out. The others change only if the file names them.
_ALWAYS = frozenset(("content", "title", "tags", "source"))
_MERGED = ("category", "scope", "importance", "confidence", "expanded_keywords", "valid_from", "valid_to", "sensitive")
# A file changed this shortly before it was read may change again within the same time stamp: it is read once more.
RECENT_NANOSECONDS = 2 * 10**9


class AssignedPart(msgspec.Struct, frozen=True):
    """A part and the id of its memory; `known` is its entry in the ledger of ingested files."""

    id: str
    prepared: PreparedPart
    known: KnownPart | None


class FileChange(msgspec.Struct, frozen=True):
    """All that one file changes in the store, before it is written."""

    parsed: ParsedFile
    assigned: Sequence[AssignedPart]
    gone: Sequence[KnownPart]
    handed_over: Sequence[KnownPart]
    added: Sequence[Entry]
    changed: Sequence[tuple[Memory, Memory]]
    shifted: Sequence[tuple[str, tuple[int, int]]]
    counts: Mapping[str, int]
    redacted: Mapping[str, int]


def plan_change(
    engine: Engine, vault: Vault, parsed: ParsedFile, assigned: Sequence[AssignedPart], gone: Sequence[KnownPart],
    handed_over: Sequence[KnownPart],
) -> FileChange:  # fmt: skip
    counts: Counter[str] = Counter()
    redacted: Counter[str] = Counter()
    added, changed, shifted = [], [], []
    current = engine.store.memories.get_many([one.id for one in assigned])
    for one in assigned:
        memory = current.get(one.id)
        kind = _kind(one, memory, parsed.path)
        if kind == "stored" and memory is None:
            entry, found = guard(engine, _new(engine, vault, parsed, one))
            added.append(entry)
            redacted.update(found)
        elif kind in ("stored", "updated", "moved") and memory is not None:
            merged = _merged(memory, _new(engine, vault, parsed, one), one.prepared.part.fields)
            if kind == "stored" and memory.state != "deleted":  # a mirrored file, which names its memory
                kind = "updated" if merged != memory else "unchanged"
            changed.append((merged, memory))
        elif kind == "unchanged" and memory is not None and (lines := one.prepared.part.lines):
            source = memory.source
            if source and (source.start_line, source.end_line) != lines:
                shifted.append((one.id, lines))
        counts[kind] += 1
    counts["forgotten"] = _count_living(engine, gone)
    return FileChange(parsed, assigned, gone, handed_over, added, changed, shifted, counts, redacted)


def apply(engine: Engine, vault: Vault, work: FileChange) -> None:
    parsed, vaults = work.parsed, engine.store.vaults
    with engine.store.together():
        add_entries(engine, work.added)
        for memory, old in work.changed:
            rewrite(engine, memory, "ingest", unless=old)
        for id, lines in work.shifted:
            vaults.set_lines(id, *lines)
        _forget(engine, work.gone)
        known = [_entry(parsed.path, one) for one in work.assigned]
        file = KnownFile(parsed.path, parsed.text.size, _modified(parsed), stamp_of(parsed.format, vault.options))
        vaults.note_file(vault.name, file, [*known, *work.handed_over], [part.id for part in work.gone])
    engine.worker.wake()


def apply_gone(engine: Engine, vault: Vault, path: str, gone: Sequence[KnownPart]) -> int:
    """Forgets the memories of a file that is gone, and returns how many."""
    count = _count_living(engine, gone)
    with engine.store.together():
        _forget(engine, gone)
        engine.store.vaults.forget_file(vault.name, path, [part.id for part in gone])
    return count


def _kind(one: AssignedPart, memory: Memory | None, path: str) -> str:
    """A memory that a person forgot or purged stays away; one forgotten because its file was gone comes back."""
    if one.known is None:
        return "stored"
    if memory is None or memory.state == "deleted":
        return "left_forgotten"
    if one.known.path != path:
        return "moved"
    return "updated" if one.known.said != one.prepared.whole_digest else "unchanged"


def _new(engine: Engine, vault: Vault, parsed: ParsedFile, one: AssignedPart) -> Memory:
    part = one.prepared.part
    first, last = part.lines or (None, None)
    given = {name: value for name, value in part.fields.items() if name != "state"}
    values: dict[str, Any] = {
        "category": default_category(parsed.format, engine.settings.categories),
        "created_at": stamp(datetime.fromtimestamp(parsed.text.modified / 10**9, UTC)),
        "source": f"{vault.name}/{parsed.path}",
        "start_line": first,
        "end_line": last,
    }
    request = contract.check(contract.Remember, {**values, **given, "id": one.id, "content": part.content})
    memory = new_memory(engine, request)
    return msgspec.structs.replace(memory, state=part.fields.get("state", "active"))


def _merged(current: Memory, new: Memory, given: Mapping[str, Any]) -> Memory:
    names = [name for name in (*_ALWAYS, *_MERGED) if name in _ALWAYS or name in given]
    state = new.state if "state" in given or current.state == "deleted" else current.state
    if {state, current.state} == {"active", "superseded"}:
        state = current.state  # links decide between these two
    return msgspec.structs.replace(current, state=state, **{name: getattr(new, name) for name in names})


def _entry(path: str, one: AssignedPart) -> KnownPart:
    """The ledger's entry. Of a memory that a person purged it keeps no digests again."""
    prepared = one.prepared
    if one.known is not None and not one.known.said:
        return msgspec.structs.replace(one.known, path=path)
    return KnownPart(one.id, path, prepared.place, prepared.content_digest, prepared.whole_digest, prepared.about)


def _modified(parsed: ParsedFile) -> int:
    return parsed.text.modified if time.time_ns() - parsed.text.modified > RECENT_NANOSECONDS else -1


def _count_living(engine: Engine, gone: Sequence[KnownPart]) -> int:
    found = engine.store.memories.get_many([part.id for part in gone])
    return sum(memory.state != "deleted" for memory in found.values())


def _forget(engine: Engine, gone: Sequence[KnownPart]) -> None:
    for memory in engine.store.memories.get_many([part.id for part in gone]).values():
        if memory.state != "deleted":
            rewrite(engine, msgspec.structs.replace(memory, state="deleted"), "forget")
