"""Finding what a store could do without. What is not beyond doubt is shown and left alone; nothing is ever purged."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from trivet import contract
from trivet.clock import now
from trivet.errors import InvalidInput
from trivet.ids import new_id
from trivet.memory.engine import Engine
from trivet.memory.lifecycle import forget, restore
from trivet.memory.likeness import essence
from trivet.secrets import masked
from trivet.types import Memory, Tidied, Tidy, TidyKind

# What nobody has asked for yet may be asked for tomorrow: it is forgotten only where that is said.
BY_DEFAULT: frozenset[TidyKind] = frozenset(("duplicate", "expired", "orphan"))
ALL: frozenset[TidyKind] = BY_DEFAULT | {"unused"}
# Whoever gave a memory such an importance meant it to stay.
KEPT_FROM_IMPORTANCE = 0.8
PREVIEW = 120
ACT = "tidy"
# As far back as an undo looks.
ENTRIES = 10_000


class Shelf(msgspec.Struct, frozen=True):
    """The living memories, and what is known about them beside their words."""

    memories: dict[str, Memory]
    files: dict[str, Path]
    origins: dict[str, tuple[str, str]]  # the vault, and the path in it
    roots_gone: dict[str, Path]
    linked: frozenset[str]

    def doubtful(self, id: str) -> str | None:
        """Why a memory is not forgotten without being asked for by name."""
        if id in self.files:
            return f"it stands in {self.files[id]}, so change it there"
        return "it has links, which lead somewhere else without it" if id in self.linked else None


def tidy(engine: Engine, kinds: frozenset[TidyKind], dry_run: bool, unused_days: int) -> Tidy:
    if kinds - ALL:
        raise InvalidInput(f"kinds: {', '.join(sorted(kinds - ALL))} is not one of {', '.join(sorted(ALL))}.")
    if unused_days < 1:
        raise InvalidInput("unused_days: at least one day is expected.")
    chosen = kinds or (ALL if dry_run else BY_DEFAULT)
    shelf, notes = _shelf(engine), []
    found = [
        *(_duplicates(shelf) if "duplicate" in chosen else ()),
        *(_expired(shelf) if "expired" in chosen else ()),
        *(_orphans(engine, shelf) if "orphan" in chosen else ()),
    ]
    if "unused" in chosen:
        unused, note = _unused(engine, shelf, unused_days, "unused" in kinds)
        found += unused
        notes += [note] if note else []
    findings = _once_each(found)
    if dry_run:
        return Tidy(findings=findings, notes=tuple(notes))
    run = new_id()
    return Tidy(
        findings=findings, forgotten=_forget(engine, shelf, run, findings), dry_run=False, run=run, notes=tuple(notes)
    )


def undo_last(engine: Engine) -> Tidy:
    """Brings back what the last run forgot and nobody has restored since."""
    entries = [entry for entry in engine.store.audit.noted(ENTRIES) if entry.act == ACT and entry.memory]
    if not entries:
        raise InvalidInput("No tidy has forgotten anything here, so there is nothing to undo.")
    run = entries[0].detail.partition(" ")[0]
    ids = [str(entry.memory) for entry in entries if entry.detail.startswith(run)]
    gone = {id: one for id, one in engine.store.memories.get_many(ids).items() if one.state == "deleted"}
    with engine.store.together():
        for id in gone:
            restore(engine, contract.Restore(id=id))
    note = f"{len(gone)} memories are back." if gone else "They are all back already."
    return Tidy(findings=(), dry_run=False, run=run, notes=(note,))


def _forget(engine: Engine, shelf: Shelf, run: str, findings: Iterable[Tidied]) -> int:
    """One transaction, with the record that undoing it goes by. What lost its file comes back with it, as if an ingest
    had found it gone."""
    done = 0
    with engine.store.together():
        for finding in findings:
            if finding.act == "forget":
                forget(engine, contract.Forget(id=finding.id))
                engine.store.audit.note(ACT, finding.id, f"{run} {finding.kind}")
                if finding.kind == "orphan":
                    vault, path = shelf.origins[finding.id]
                    engine.store.vaults.forget_file(vault, path, [finding.id])
                done += 1
    return done


def _is_there(file: Path) -> bool:
    """Also one that we may not look at."""
    try:
        file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _shelf(engine: Engine) -> Shelf:
    memories = {one.id: one for one in engine.store.memories.everything() if one.state != "deleted"}
    files: dict[str, Path] = {}
    origins: dict[str, tuple[str, str]] = {}
    roots_gone: dict[str, Path] = {}
    for vault in engine.store.vaults.vaults():
        root, parts = Path(vault.root), engine.store.vaults.parts(vault.name)
        for part in parts:
            files[part.id] = root if root.is_file() else root / part.path
            origins[part.id] = (vault.name, part.path)
        # A disk that is not mounted looks like a folder from which everything was deleted.
        if not any(_is_there(file) for file in {files[part.id] for part in parts}):
            roots_gone |= {part.id: root for part in parts}
    links = engine.store.links.everything()
    linked = frozenset(id for link in links for id in (link.source, link.target))
    return Shelf(memories, files, origins, roots_gone, linked)


def _duplicates(shelf: Shelf) -> Iterator[Tidied]:
    """The same words in the same place, word order and negations included; titles and times count as well."""
    alike: defaultdict[tuple[object, ...], list[Memory]] = defaultdict(list)
    for memory in shelf.memories.values():
        if memory.state == "active" and not memory.sensitive:
            said = (essence(memory.content), essence(memory.title or ""), memory.valid_from, memory.valid_to)
            alike[memory.owner, memory.scope, memory.category, *said].append(memory)
    for group in alike.values():
        kept, *others = sorted(group, key=lambda one: _standing(shelf, one))
        for other in others:
            reason = f"says the same as {kept.id}, which stays"
            yield _finding(shelf, "duplicate", other, reason)


def _standing(shelf: Shelf, memory: Memory) -> tuple[bool, bool, float, str, str]:
    """Which of several stays: one that stands in a file, then one with links, the most important, the oldest."""
    return (
        memory.id not in shelf.files, memory.id not in shelf.linked, -memory.importance, memory.created_at, memory.id,
    )  # fmt: skip


def _expired(shelf: Shelf) -> Iterator[Tidied]:
    moment = now()
    for memory in shelf.memories.values():
        if memory.valid_to is not None and memory.valid_to <= moment:
            yield _finding(shelf, "expired", memory, f"true until {memory.valid_to[:10]} only")


def _unused(engine: Engine, shelf: Shelf, days: int, named: bool) -> tuple[list[Tidied], str | None]:
    """Those that recall has never shown, where it has been counted for long enough to say so."""
    before = (datetime.now(UTC) - timedelta(days=days)).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    engine.tally.write_down()
    since = engine.store.usage.since()
    if since is None or since > before:
        told = f"is counted since {since[:10]}" if since else "was never counted yet"
        return [], f"What recall shows {told}; what it never shows can be told after {days} days of counting."
    shown = engine.store.usage.shown()
    found = []
    for memory in shelf.memories.values():
        recent = memory.created_at >= before or memory.importance >= KEPT_FROM_IMPORTANCE
        if memory.id in shown or recent or memory.state != "active" or shelf.doubtful(memory.id):
            continue
        finding = _finding(shelf, "unused", memory, f"not shown by any recall in {days} days")
        found.append(finding if named else msgspec.structs.replace(finding, act="look"))
    return found, None


def _orphans(engine: Engine, shelf: Shelf) -> Iterator[Tidied]:
    """What came from a file that is gone, and links that lead to what was forgotten."""
    for id, file in shelf.files.items():
        memory = shelf.memories.get(id)
        if memory is None:
            continue
        if id in shelf.roots_gone:
            reason = f"nothing of {shelf.roots_gone[id]} is there; `trivet ingest --list` shows it"
            yield _tidied("orphan", memory, reason, "look")
        elif not _is_there(file):
            yield _tidied("orphan", memory, f"its file {file} is gone", "forget")
    dead: Counter[str] = Counter()
    for link in engine.store.links.everything():
        for one, other in ((link.source, link.target), (link.target, link.source)):
            if one in shelf.memories and other not in shelf.memories:
                dead[one] += 1
    for id, count in dead.items():
        reason = f"{count} of its links lead to what was forgotten; `trivet links {id}` shows them, unlink removes one"
        yield _tidied("orphan", shelf.memories[id], reason, "look")


def _finding(shelf: Shelf, kind: TidyKind, memory: Memory, reason: str) -> Tidied:
    doubt = shelf.doubtful(memory.id)
    if doubt:
        return _tidied(kind, memory, f"{reason}; {doubt}", "look")
    return _tidied(kind, memory, reason, "forget")


def _tidied(kind: TidyKind, memory: Memory, reason: str, act: str) -> Tidied:
    content = " ".join(masked(memory).content.split())[:PREVIEW]
    return Tidied(kind=kind, id=memory.id, reason=reason, act="forget" if act == "forget" else "look", content=content)


def _once_each(found: Iterable[Tidied]) -> tuple[Tidied, ...]:
    """A memory is forgotten once, for its first reason."""
    kept: dict[tuple[str, str], Tidied] = {}
    for finding in found:
        kept.setdefault((finding.id, finding.act), finding)
    return tuple(kept.values())
