"""Finding and forgetting memories that a store does not need; nothing is ever purged."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import msgspec

from trivet import contract
from trivet.common.clock import moment, moment_or_none, now
from trivet.common.ids import new_id
from trivet.errors import InvalidInput
from trivet.memory.engine import Engine
from trivet.memory.lifecycle import forget, restore
from trivet.memory.similarity import content_key
from trivet.secrets.masking import masked
from trivet.types import LOCAL, Memory, Tidied, Tidy, TidyKind, Usage

# Other kinds are forgotten only on request by name: an unused memory may be needed later.
DEFAULT_KINDS: frozenset[TidyKind] = frozenset(("duplicate", "expired", "orphan"))
ALL_KINDS: frozenset[TidyKind] = DEFAULT_KINDS | {"unused", "unhelpful"}
# Negative verdicts, without a positive one, that count; a single one may be about the question.
MIN_NOT_USEFUL = 2
# Showings without a positive verdict that count, if at least MIN_USEFUL_MEMORIES memories have one.
MIN_SHOWN = 30
MIN_USEFUL_MEMORIES = 10
# From this importance on, a memory is meant to stay.
PROTECTED_IMPORTANCE = 0.8
PREVIEW_CHARACTERS = 120
TIDY_ACT = "tidy"
UNDO_AUDIT_ENTRIES = 10_000


class Inventory(msgspec.Struct, frozen=True):
    memories: dict[str, Memory]
    files: dict[str, Path]
    origins: dict[str, tuple[str, str]]  # vault, path in it
    roots_gone: dict[str, Path]
    linked: frozenset[str]

    def doubtful(self, id: str) -> str | None:
        """Return why a memory must not be forgotten, or None."""
        if id in self.files:
            return f"it comes from {self.files[id]}, so change it there"
        return "it has links, which would break" if id in self.linked else None


def tidy(engine: Engine, kinds: frozenset[TidyKind], dry_run: bool, unused_days: int) -> Tidy:
    if kinds - ALL_KINDS:
        raise InvalidInput(
            f"kinds: {', '.join(sorted(kinds - ALL_KINDS))} is not one of "
            f"{', '.join(sorted(ALL_KINDS))}."
        )
    if unused_days < 1:
        raise InvalidInput("unused_days: give at least 1.")
    chosen = kinds or (ALL_KINDS if dry_run else DEFAULT_KINDS)
    inventory, notes = _inventory(engine), []
    found = [
        *(_duplicates(inventory) if "duplicate" in chosen else ()),
        *(_expired(inventory) if "expired" in chosen else ()),
        *(_orphans(engine, inventory) if "orphan" in chosen else ()),
    ]
    if "unused" in chosen:
        unused, note = _unused(engine, inventory, unused_days, "unused" in kinds)
        found += unused
        notes += [note] if note else []
    if "unhelpful" in chosen:
        found += _unhelpful(engine, inventory, "unhelpful" in kinds)
    findings = _unique_findings(found)
    if dry_run:
        return Tidy(findings=findings, notes=tuple(notes))
    run = new_id()
    return Tidy(
        findings=findings,
        forgotten=_forget(engine, inventory, run, findings),
        dry_run=False,
        run=run,
        notes=tuple(notes),
    )


def undo_last(engine: Engine) -> Tidy:
    entries = [
        entry
        for entry in engine.store.audit.noted(UNDO_AUDIT_ENTRIES)
        if entry.act == TIDY_ACT and entry.memory
    ]
    if not entries:
        raise InvalidInput("Tidy has not forgotten anything here, so there is nothing to undo.")
    run = entries[0].detail.partition(" ")[0]
    ids = [str(entry.memory) for entry in entries if entry.detail.startswith(run)]
    gone = {
        id: one for id, one in engine.store.memories.get_many(ids).items() if one.state == "deleted"
    }
    with engine.store.together():
        for id in gone:
            restore(engine, contract.Restore(id=id))
    note = f"{len(gone)} memories are back." if gone else "They were all restored before."
    return Tidy(findings=(), dry_run=False, run=run, notes=(note,))


def _forget(engine: Engine, inventory: Inventory, run: str, findings: Iterable[Tidied]) -> int:
    """Forget in one transaction; a memory whose file is gone returns with the file."""
    done = 0
    with engine.store.together():
        for finding in findings:
            if finding.act == "forget":
                forget(engine, contract.Forget(id=finding.id))
                engine.store.audit.note(TIDY_ACT, finding.id, f"{run} {finding.kind}")
                if finding.kind == "orphan":
                    vault, path = inventory.origins[finding.id]
                    engine.store.vaults.forget_file(vault, path, [finding.id])
                done += 1
    return done


def _exists(file: Path) -> bool:
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _inventory(engine: Engine) -> Inventory:
    own = LOCAL if engine.follows else None  # on a laptop, leave others' shared memories to them
    memories = {
        one.id: one
        for one in engine.store.memories.everything()
        if one.state != "deleted" and own in (None, one.owner)
    }
    files: dict[str, Path] = {}
    origins: dict[str, tuple[str, str]] = {}
    roots_gone: dict[str, Path] = {}
    for vault in engine.store.vaults.vaults():
        root, parts = Path(vault.root), engine.store.vaults.parts(vault.name)
        for part in parts:
            files[part.id] = root if root.is_file() else root / part.path
            origins[part.id] = (vault.name, part.path)
        # If no file of a vault exists, its disk is probably not mounted.
        if not any(_exists(file) for file in {files[part.id] for part in parts}):
            roots_gone |= {part.id: root for part in parts}
    links = engine.store.links.everything()
    linked = frozenset(id for link in links for id in (link.source, link.target))
    return Inventory(memories, files, origins, roots_gone, linked)


def _duplicates(inventory: Inventory) -> Iterator[Tidied]:
    alike: defaultdict[tuple[object, ...], list[Memory]] = defaultdict(list)
    for memory in inventory.memories.values():
        if memory.state == "active" and not memory.sensitive:
            words = (
                content_key(memory.content),
                content_key(memory.title or ""),
                memory.valid_from,
                memory.valid_to,
            )
            alike[memory.owner, memory.scope, memory.category, *words].append(memory)
    for group in alike.values():
        kept, *others = sorted(group, key=lambda one: _keep_priority(inventory, one))
        for other in others:
            reason = f"says the same as {kept.id}, which stays"
            yield _finding(inventory, "duplicate", other, reason)


def _keep_priority(inventory: Inventory, memory: Memory) -> tuple[bool, bool, float, datetime, str]:
    outside, unlinked = memory.id not in inventory.files, memory.id not in inventory.linked
    return outside, unlinked, -memory.importance, memory.created_at, memory.id


def _expired(inventory: Inventory) -> Iterator[Tidied]:
    current = moment(now())
    for memory in inventory.memories.values():
        if memory.valid_to is not None and memory.valid_to <= current:
            yield _finding(
                inventory, "expired", memory, f"true until {memory.valid_to:%Y-%m-%d} only"
            )


def _unused(
    engine: Engine, inventory: Inventory, days: int, named: bool
) -> tuple[list[Tidied], str | None]:
    before = moment(now()) - timedelta(days=days)
    engine.usage_counter.flush()
    since = moment_or_none(engine.store.usage.since())
    if since is None or since > before:
        counted = f"since {since:%Y-%m-%d}" if since else "not yet"
        return (
            [],
            f"Unused memories are known after {days} days of counting what recall shows "
            f"(counted {counted}).",
        )
    shown = engine.store.usage.shown()
    found = []
    for memory in inventory.memories.values():
        recent = memory.created_at >= before or memory.importance >= PROTECTED_IMPORTANCE
        if (
            memory.id in shown
            or recent
            or memory.state != "active"
            or inventory.doubtful(memory.id)
        ):
            continue
        finding = _finding(inventory, "unused", memory, f"not shown by any recall in {days} days")
        found.append(finding if named else msgspec.structs.replace(finding, act="look"))
    return found, None


def _unhelpful(engine: Engine, inventory: Inventory, named: bool) -> Iterator[Tidied]:
    engine.usage_counter.flush()
    counted = engine.store.usage.all()
    feedback_given = sum(one.useful > 0 for one in counted) >= MIN_USEFUL_MEMORIES
    for one in counted:
        memory = inventory.memories.get(one.id)
        reason = _unhelpful_reason(one, feedback_given)
        if (
            memory is None
            or reason is None
            or memory.importance >= PROTECTED_IMPORTANCE
            or memory.state != "active"
        ):
            continue
        finding = _finding(inventory, "unhelpful", memory, reason)
        yield finding if named else msgspec.structs.replace(finding, act="look")


def _unhelpful_reason(usage: Usage, feedback_given: bool) -> str | None:
    if usage.useful:
        return None
    if usage.not_useful >= MIN_NOT_USEFUL:
        return f"called not useful {usage.not_useful} times, and never useful"
    if feedback_given and usage.shown >= MIN_SHOWN:
        return f"shown {usage.shown} times, and never called useful"
    return None


def _orphans(engine: Engine, inventory: Inventory) -> Iterator[Tidied]:
    for id, file in inventory.files.items():
        memory = inventory.memories.get(id)
        if memory is None:
            continue
        if id in inventory.roots_gone:
            reason = (
                f"{inventory.roots_gone[id]} is missing entirely; `trivet ingest --list` shows it"
            )
            yield _tidied("orphan", memory, reason, "look")
        elif not _exists(file):
            yield _tidied("orphan", memory, f"its file {file} is gone", "forget")
    dead: Counter[str] = Counter()
    for link in engine.store.links.everything():
        for one, other in ((link.source, link.target), (link.target, link.source)):
            if one in inventory.memories and other not in inventory.memories:
                dead[one] += 1
    for id, count in dead.items():
        reason = (
            f"{count} of its links lead to forgotten memories; `trivet links {id}` "
            "shows them, `unlink` removes one"
        )
        yield _tidied("orphan", inventory.memories[id], reason, "look")


def _finding(inventory: Inventory, kind: TidyKind, memory: Memory, reason: str) -> Tidied:
    doubt = inventory.doubtful(memory.id)
    if doubt:
        return _tidied(kind, memory, f"{reason}; {doubt}", "look")
    return _tidied(kind, memory, reason, "forget")


def _tidied(kind: TidyKind, memory: Memory, reason: str, act: str) -> Tidied:
    content = " ".join(masked(memory).content.split())[:PREVIEW_CHARACTERS]
    return Tidied(
        kind=kind,
        id=memory.id,
        reason=reason,
        act="forget" if act == "forget" else "look",
        content=content,
    )


def _unique_findings(found: Iterable[Tidied]) -> tuple[Tidied, ...]:
    kept: dict[tuple[str, str], Tidied] = {}
    for finding in found:
        kept.setdefault((finding.id, finding.act), finding)
    return tuple(kept.values())
