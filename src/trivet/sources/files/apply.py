"""One file into the store: everything it says is there after the transaction, or nothing is changed."""

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
from trivet.sources.files.plan import Prepared
from trivet.sources.files.prepare import Opened, default_category, stamp_of
from trivet.sources.files.vault import Vault
from trivet.store.records import Entry, KnownFile, KnownPart
from trivet.types import Memory

# What a file always says, also by leaving it out. The rest of a memory is changed only if the file names it.
_ALWAYS = frozenset(("content", "title", "tags", "source"))
_MERGED = ("category", "scope", "importance", "confidence", "expanded_keywords", "valid_from", "valid_to", "sensitive")
# A file that was changed so shortly before it was read may be changed again without its time showing it.
UNSURE_NANOSECONDS = 2 * 10**9


class Chosen(msgspec.Struct, frozen=True):
    """A part and the id of its memory; `known` is what the ledger has of it."""

    id: str
    prepared: Prepared
    known: KnownPart | None


class Work(msgspec.Struct, frozen=True):
    """All that one file changes. Nothing of it is written yet."""

    opened: Opened
    chosen: Sequence[Chosen]
    gone: Sequence[KnownPart]
    handed_over: Sequence[KnownPart]
    added: Sequence[Entry]
    changed: Sequence[tuple[Memory, Memory]]
    shifted: Sequence[tuple[str, tuple[int, int]]]
    counts: Mapping[str, int]
    redacted: Mapping[str, int]


def work_of(
    engine: Engine, vault: Vault, opened: Opened, chosen: Sequence[Chosen], gone: Sequence[KnownPart],
    handed_over: Sequence[KnownPart],
) -> Work:  # fmt: skip
    counts: Counter[str] = Counter()
    redacted: Counter[str] = Counter()
    added, changed, shifted = [], [], []
    current = engine.store.memories.get_many([one.id for one in chosen])
    for one in chosen:
        memory = current.get(one.id)
        kind = _kind(one, memory, opened.path)
        if kind == "stored" and memory is None:
            entry, found = guard(engine, _new(engine, vault, opened, one))
            added.append(entry)
            redacted.update(found)
        elif kind in ("stored", "updated", "moved") and memory is not None:
            merged = _merged(memory, _new(engine, vault, opened, one), one.prepared.part.fields)
            if kind == "stored" and memory.state != "deleted":  # a file that says which memory it is
                kind = "updated" if merged != memory else "unchanged"
            changed.append((merged, memory))
        elif kind == "unchanged" and memory is not None and (lines := one.prepared.part.lines):
            source = memory.source
            if source and (source.start_line, source.end_line) != lines:
                shifted.append((one.id, lines))
        counts[kind] += 1
    counts["forgotten"] = _living(engine, gone)
    return Work(opened, chosen, gone, handed_over, added, changed, shifted, counts, redacted)


def apply(engine: Engine, vault: Vault, work: Work) -> None:
    opened, vaults = work.opened, engine.store.vaults
    with engine.store.together():
        engine.store.memories.add_many(work.added)
        for memory, old in work.changed:
            rewrite(engine, memory, "ingest", unless=old)
        for id, lines in work.shifted:
            vaults.set_lines(id, *lines)
        _forget(engine, work.gone)
        known = [_entry(opened.path, one) for one in work.chosen]
        file = KnownFile(opened.path, opened.text.size, _sure(opened), stamp_of(opened.format, vault.options))
        vaults.note_file(vault.name, file, [*known, *work.handed_over], [part.id for part in work.gone])
    engine.worker.wake()


def apply_gone(engine: Engine, vault: Vault, path: str, gone: Sequence[KnownPart]) -> int:
    """A file that is not there any more. Returns how many memories were forgotten."""
    count = _living(engine, gone)
    with engine.store.together():
        _forget(engine, gone)
        engine.store.vaults.forget_file(vault.name, path, [part.id for part in gone])
    return count


def _kind(one: Chosen, memory: Memory | None, path: str) -> str:
    """What was forgotten or purged by hand stays so; what was forgotten because its file was gone comes back."""
    if one.known is None:
        return "stored"
    if memory is None or memory.state == "deleted":
        return "left_forgotten"
    if one.known.path != path:
        return "moved"
    return "updated" if one.known.said != one.prepared.said else "unchanged"


def _new(engine: Engine, vault: Vault, opened: Opened, one: Chosen) -> Memory:
    part = one.prepared.part
    first, last = part.lines or (None, None)
    said = {name: value for name, value in part.fields.items() if name != "state"}
    values: dict[str, Any] = {
        "category": default_category(opened.format, engine.settings.categories),
        "created_at": stamp(datetime.fromtimestamp(opened.text.modified / 10**9, UTC)),
        "source": f"{vault.name}/{opened.path}",
        "start_line": first,
        "end_line": last,
    }
    request = contract.check(contract.Remember, {**values, **said, "id": one.id, "content": part.content})
    memory = new_memory(engine, request)
    return msgspec.structs.replace(memory, state=part.fields.get("state", "active"))


def _merged(current: Memory, new: Memory, said: Mapping[str, Any]) -> Memory:
    names = [name for name in (*_ALWAYS, *_MERGED) if name in _ALWAYS or name in said]
    state = new.state if "state" in said or current.state == "deleted" else current.state
    if {state, current.state} == {"active", "superseded"}:
        state = current.state  # which follows from links
    return msgspec.structs.replace(current, state=state, **{name: getattr(new, name) for name in names})


def _entry(path: str, one: Chosen) -> KnownPart:
    """Of what was purged by hand the ledger must not learn the words again."""
    prepared = one.prepared
    if one.known is not None and not one.known.said:
        return msgspec.structs.replace(one.known, path=path)
    return KnownPart(one.id, path, prepared.place, prepared.content, prepared.said, prepared.about)


def _sure(opened: Opened) -> int:
    return opened.text.modified if time.time_ns() - opened.text.modified > UNSURE_NANOSECONDS else -1


def _living(engine: Engine, gone: Sequence[KnownPart]) -> int:
    found = engine.store.memories.get_many([part.id for part in gone])
    return sum(memory.state != "deleted" for memory in found.values())


def _forget(engine: Engine, gone: Sequence[KnownPart]) -> None:
    for memory in engine.store.memories.get_many([part.id for part in gone]).values():
        if memory.state != "deleted":
            rewrite(engine, msgspec.structs.replace(memory, state="deleted"), "forget")
