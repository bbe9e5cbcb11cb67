"""Writing of a file's changes in one transaction, and of a vault's links after a run.

A target may be read after its link, so links are resolved last. The ledger separates them from
links that people made, which are never removed.
"""

from __future__ import annotations

import posixpath
import time
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from trivet import contract
from trivet.common.clock import moment, now, stamp
from trivet.common.threads import prepared_type
from trivet.errors import Conflict, NotFound
from trivet.memory.engine import Engine
from trivet.memory.remember import guard, new_memory, rewrite
from trivet.memory.sealed_secrets import add_entries
from trivet.sources.files.markdown import slug
from trivet.sources.files.parts import About
from trivet.sources.files.prepare import ParsedFile, PreparedPart, default_category, stamp_of
from trivet.sources.files.vault import Vault
from trivet.store.records import Entry, VaultFile, VaultLink, VaultPart
from trivet.types import Link, Memory

# These follow the file even if it omits them, others only if it names them.
_ALWAYS = frozenset(("content", "title", "tags", "source"))
_MERGED = (
    "category",
    "scope",
    "importance",
    "confidence",
    "expanded_keywords",
    "valid_from",
    "valid_to",
    "sensitive",
)
# A file this recent may change within the same time stamp, so it is read again.
RECENT_NANOSECONDS = 2 * 10**9


class AssignedPart(msgspec.Struct, frozen=True):
    id: str
    prepared: PreparedPart
    known: VaultPart | None


class FileChange(msgspec.Struct, frozen=True):
    parsed: ParsedFile
    assigned: Sequence[AssignedPart]
    gone: Sequence[VaultPart]
    transferred: Sequence[VaultPart]
    added: Sequence[Entry]
    changed: Sequence[tuple[Memory, Memory]]
    shifted: Sequence[tuple[str, tuple[int, int]]]
    counts: Mapping[str, int]
    redacted: Mapping[str, int]


def plan_change(
    engine: Engine,
    vault: Vault,
    parsed: ParsedFile,
    assigned: Sequence[AssignedPart],
    gone: Sequence[VaultPart],
    transferred: Sequence[VaultPart],
) -> FileChange:
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
            # A mirror file names an existing memory.
            if kind == "stored" and memory.state != "deleted":
                kind = "updated" if merged != memory else "unchanged"
            changed.append((merged, memory))
        elif kind == "unchanged" and memory is not None and (lines := one.prepared.part.lines):
            source = memory.source
            if source and (source.start_line, source.end_line) != lines:
                shifted.append((one.id, lines))
        counts[kind] += 1
    counts["forgotten"] = _count_living(engine, gone)
    return FileChange(
        parsed, assigned, gone, transferred, added, changed, shifted, counts, redacted
    )


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
        file = VaultFile(
            parsed.path, parsed.text.size, _modified(parsed), stamp_of(parsed.format, vault.options)
        )
        vaults.note_file(
            vault.name, file, [*known, *work.transferred], [part.id for part in work.gone]
        )
    engine.worker.wake()


def apply_gone(engine: Engine, vault: Vault, path: str, gone: Sequence[VaultPart]) -> int:
    count = _count_living(engine, gone)
    with engine.store.together():
        _forget(engine, gone)
        engine.store.vaults.forget_file(vault.name, path, [part.id for part in gone])
    return count


def _kind(one: AssignedPart, memory: Memory | None, path: str) -> str:
    """Keep what a person forgot or purged away; restore what a missing file had forgotten."""
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
    request = contract.check(
        contract.Remember, {**values, **given, "id": one.id, "content": part.content}
    )
    memory = new_memory(engine, request)
    return msgspec.structs.replace(memory, state=part.fields.get("state", "active"))


def _merged(current: Memory, new: Memory, given: Mapping[str, Any]) -> Memory:
    names = [name for name in (*_ALWAYS, *_MERGED) if name in _ALWAYS or name in given]
    state = new.state if "state" in given or current.state == "deleted" else current.state
    if {state, current.state} == {"active", "superseded"}:
        state = current.state  # links decide between these two
    return msgspec.structs.replace(
        current, state=state, **{name: getattr(new, name) for name in names}
    )


def _entry(path: str, one: AssignedPart) -> VaultPart:
    prepared = one.prepared
    if one.known is not None and not one.known.said:
        return msgspec.structs.replace(one.known, path=path)
    return VaultPart(
        one.id, path, prepared.place, prepared.content_digest, prepared.whole_digest, prepared.about
    )


def _modified(parsed: ParsedFile) -> int:
    return (
        parsed.text.modified if time.time_ns() - parsed.text.modified > RECENT_NANOSECONDS else -1
    )


def _count_living(engine: Engine, gone: Sequence[VaultPart]) -> int:
    found = engine.store.memories.get_many([part.id for part in gone])
    return sum(memory.state != "deleted" for memory in found.values())


def _forget(engine: Engine, gone: Sequence[VaultPart]) -> None:
    for memory in engine.store.memories.get_many([part.id for part in gone]).values():
        if memory.state != "deleted":
            rewrite(engine, msgspec.structs.replace(memory, state="deleted"), "forget")


class _Known(msgspec.Struct, frozen=True):
    part: VaultPart
    about: About


class LinkResolver:
    """A lookup of parts by path, file name, title and alias, in this order."""

    def __init__(self, parts: Sequence[VaultPart]) -> None:
        self.parts = [
            _Known(part, msgspec.json.decode(part.about, type=prepared_type(About)))
            for part in parts
        ]
        self._by_path: dict[str, list[_Known]] = defaultdict(list)
        self._by_name: dict[str, list[str]] = defaultdict(list)
        self._ids = {part.id for part in parts}
        for known in self.parts:
            self._by_path[known.part.path.casefold()].append(known)
        for path, inside in self._by_path.items():
            names = (
                _stem(path),
                *(name.casefold() for name in (inside[0].about.note, *inside[0].about.aliases)),
            )
            for name in dict.fromkeys(names):
                self._by_name[name].append(path)

    def links(self) -> Iterator[VaultLink]:
        for known in self.parts:
            targets = [*(self._wiki(name) for name in known.about.wiki)]
            targets += [self._file(known.part.path, target) for target in known.about.files]
            for target in dict.fromkeys(targets):
                if target is not None and target != known.part.id:
                    yield VaultLink(known.part.id, "see-also", target)
            for kind, id in known.about.ids:
                yield VaultLink(known.part.id, kind, id)  # type: ignore[arg-type]  # reader checks

    def _wiki(self, written: str) -> str | None:
        name, _, heading = written.partition("#")
        name = name.strip().casefold()
        for path in (f"{name}.md", name):
            if path in self._by_path:
                return self._part(path, heading)
        within = "/" in name
        ends = [
            path
            for path in self._by_path
            if within and path.removesuffix(".md").endswith(f"/{name}")
        ]
        candidates = ends or self._by_name.get(name, [])
        return (
            self._part(min(candidates, key=lambda path: (path.count("/"), path)), heading)
            if candidates
            else None
        )

    def _file(self, source: str, written: str) -> str | None:
        target, _, anchor = written.partition("#")
        path = posixpath.normpath(
            posixpath.join(posixpath.dirname(source), target.partition("?")[0])
        ).casefold()
        return self._part(path, anchor) if path in self._by_path else None

    def _part(self, path: str, heading: str) -> str | None:
        inside = self._by_path[path]
        wanted = slug(heading.rpartition("#")[2])
        named = (known for known in inside if wanted and known.about.heading == wanted)
        first = min(inside, key=lambda known: known.about.order)
        return next(named, first).part.id


def _stem(path: str) -> str:
    return posixpath.basename(path).rpartition(".")[0] or posixpath.basename(path)


class LinkChanges(msgspec.Struct, frozen=True):
    added: int = 0
    removed: int = 0
    problems: tuple[str, ...] = ()


def update_links(engine: Engine, vault: str) -> LinkChanges:
    """Update the vault's links.

    Runs even without changes, as an earlier process may have been killed before this step.
    """
    vaults = engine.store.vaults
    wanted, known = set(LinkResolver(vaults.parts(vault)).links()), set(vaults.links(vault))
    possible = sorted(_possible(engine, wanted - known), key=_order)
    unwanted = sorted(known - wanted, key=_order)
    if not possible and not unwanted:
        return LinkChanges()
    problems: list[str] = []
    with engine.store.together():
        made = [link for link in possible if _link(engine, link, problems)]
        removed = sum(_unlink(engine, link) for link in unwanted)
        vaults.note_links(vault, made, unwanted)
    return LinkChanges(len(made), removed, tuple(problems))


def _possible(engine: Engine, links: set[VaultLink]) -> list[VaultLink]:
    ids = sorted({id for link in links for id in (link.source, link.target)})
    memories = engine.store.memories.get_many(ids) if ids else {}
    living = {id for id, memory in memories.items() if memory.state != "deleted"}
    return [link for link in links if link.source in living and link.target in living]


def _link(engine: Engine, link: VaultLink, problems: list[str]) -> bool:
    try:
        engine.store.links.add(
            Link(kind=link.kind, source=link.source, target=link.target, created_at=moment(now()))
        )
    except Conflict as error:
        problems.append(f"a link was skipped: {error}")
        return False
    return True


def _unlink(engine: Engine, link: VaultLink) -> bool:
    try:
        engine.store.links.remove(link.source, link.kind, link.target)
    except NotFound:  # a person removed it, or its memory was purged
        return False
    return True


def _order(link: VaultLink) -> tuple[str, str, str]:
    return link.source, link.kind, link.target
