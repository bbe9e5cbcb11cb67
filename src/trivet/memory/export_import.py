"""Export and import as JSON Lines: a header, then one memory with its history a line, then one link a line.

Merge rules of an import: an id that is not here is added with its history; the same content is left as it is; other
content or another state wins if it was updated later than ours, as a new revision, and is left out otherwise. What was
forgotten there after our last change is forgotten here, which can be undone like any forgetting. Nothing is removed.
"""

from __future__ import annotations

import hashlib
import hmac
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from trivet import contract
from trivet.clock import parse_time
from trivet.errors import InvalidInput, NotFound, TrivetError
from trivet.ids import check_id
from trivet.memory.engine import Engine
from trivet.memory.remember import check_memory, guard, new_memory, rewrite
from trivet.memory.sealing import add_entries
from trivet.memory_fields import FIELDS
from trivet.store.records import Entry
from trivet.types import Imported, Link, Memory, Progress, Revision

FORMAT = 1
# One transaction each; a bad line costs only itself.
BATCH = 200


class Header(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    trivet_export: int
    memories: int
    links: int
    sensitive_left_out: int = 0


class MemoryLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    memory: Memory
    history: tuple[Revision, ...] = ()


class LinkLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    link: Link


def export_lines(engine: Engine, include_sensitive: bool) -> Iterator[str]:
    """The lines of an export, without line ends. Sensitive memories leave the store only if asked for."""
    kept = {memory.id for memory in engine.store.memories.everything() if include_sensitive or not memory.sensitive}
    links = [link for link in engine.store.links.everything() if link.source in kept and link.target in kept]
    total = sum(engine.store.memories.stats().memories.values())
    yield _line(Header(FORMAT, len(kept), len(links), total - len(kept)))
    for memory in engine.store.memories.everything():
        if memory.id not in kept:
            continue
        try:
            history = engine.store.memories.revisions(memory.id)
        except NotFound:  # purged by another process since the export began
            continue
        if not include_sensitive:  # a memory that is no longer sensitive may have been so before
            history = tuple(revision for revision in history if not revision.memory.sensitive)
        yield _line(MemoryLine(memory, history))
    yield from (_line(LinkLine(link)) for link in links)


def import_lines(engine: Engine, lines: Iterable[str], progress: Progress | None = None) -> Imported:
    """Takes in an export, or plain memories: lines with at least a `content`, and optionally `links`."""
    intake = _Intake(engine)
    for number, line in enumerate(lines, 1):
        if line.strip():
            intake.line(number, line)
        if progress is not None:
            progress(1)
    intake.flush()
    intake.add_links()  # after all memories, since a link may point forward
    engine.worker.wake()
    return Imported(
        **intake.counts, links=intake.links_added, errors=tuple(intake.errors), redacted=dict(intake.redacted)
    )


class _Intake:
    """Gathers new memories into batches, one transaction each; a bad line costs only itself."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._batch: dict[str, Entry] = {}
        self._links: list[tuple[int, Link]] = []
        self.counts = {"stored": 0, "unchanged": 0, "updated": 0, "kept": 0}
        self.links_added = 0
        self.errors: list[str] = []
        self.redacted: Counter[str] = Counter()

    def line(self, number: int, line: str) -> None:
        try:
            value = _decode(line)
            if "trivet_export" in value:
                _check_header(value)
            elif "link" in value:
                self._links.append((number, _checked_link(_convert(value, LinkLine).link)))
            elif "memory" in value:
                entry = _convert(value, MemoryLine)
                memory = _checked(self._engine, entry.memory)
                self._take(memory, _checked_history(self._engine, memory, entry.history))
            else:
                memory, links = _plain(self._engine, value)
                self._take(memory)
                self._links.extend((number, link) for link in links)
        except TrivetError as error:
            self.errors.append(f"line {number}: {self._engine.guard.without_secrets(str(error))}")

    def flush(self) -> None:
        entries = list(self._batch.values())
        self._batch = {}
        if entries:
            add_entries(self._engine, entries)
            self.counts["stored"] += len(entries)

    def add_links(self) -> None:
        for number, link in self._links:
            try:
                ends = {"source": self._named(link.source), "target": self._named(link.target)}
                self.links_added += self._engine.store.links.add(msgspec.structs.replace(link, **ends))
            except TrivetError as error:
                self.errors.append(f"line {number}: {self._engine.guard.without_secrets(str(error))}")

    def _named(self, id: str) -> str:
        """A memory as this caller has it: under another id where another user's has theirs. Else as it was given."""
        ours = self._engine.store.memories.claim(id)
        return ours if ours != id and self._engine.store.memories.get_many([ours]) else id

    def _take(self, memory: Memory, history: tuple[Revision, ...] = ()) -> None:
        id = memory.id
        if id in self._batch or len(self._batch) >= BATCH:
            self.flush()  # before the guard looks for the secrets that this memory has already
        entry, redacted = guard(self._engine, memory, history)
        ours = self._engine.store.memories.get_many([id]).get(id)
        if ours is None:
            self._batch[id] = entry
        else:
            self.counts[_merge(self._engine, ours, entry.memory, memory)] += 1
        self.redacted.update(redacted)


def _plain(engine: Engine, value: dict[str, Any]) -> tuple[Memory, list[Link]]:
    links = value.pop("links", None) or []
    if not isinstance(links, list):
        raise InvalidInput("links must be a list of objects such as {kind: see-also, to: ID}")
    source = value.pop("source", None)
    if isinstance(source, dict):
        value |= {"source": source.get("uri"), "start_line": source.get("start_line")}
        value["end_line"] = source.get("end_line")
    elif source is not None:
        value["source"] = source
    request = contract.check(contract.Remember, value)
    if request.id is None:  # by its content, so that the same file can be imported again
        name = f"trivet-import:{request.scope or engine.settings.scope}:{_identifying(engine, request.content)}"
        request = msgspec.structs.replace(request, id=str(uuid.uuid5(uuid.NAMESPACE_URL, name)))
    memory = new_memory(engine, request)
    memory = msgspec.structs.replace(memory, updated_at=memory.created_at)
    return memory, [_plain_link(memory, link) for link in links]


def _identifying(engine: Engine, content: str) -> str:
    """The content, or if it holds secrets, a digest that only our key can make: an id must not help to guess them."""
    if not engine.guard.spans(content):
        return content
    return hmac.new(engine.guard.keys.current().secret, content.encode(), hashlib.sha256).hexdigest()


def _plain_link(memory: Memory, link: Any) -> Link:
    entry: dict[str, Any] = {"source": memory.id, "created_at": memory.created_at}
    if isinstance(link, dict):
        entry |= {"kind": link.get("kind"), "target": link.get("to") or link.get("target")}
    return _checked_link(_convert(entry, Link))


def _checked_link(link: Link) -> Link:
    source, target = check_id(link.source, "source"), check_id(link.target, "target")
    if source == target:
        raise InvalidInput(f"a memory cannot be linked to itself ({source})")
    return msgspec.structs.replace(link, source=source, target=target)


def _check_header(value: dict[str, Any]) -> None:
    header = _convert(value, Header)
    if header.trivet_export > FORMAT:
        raise InvalidInput(f"the export has format {header.trivet_export}, this Trivet reads up to {FORMAT}")


def _merge(engine: Engine, ours: Memory, guarded: Memory, theirs: Memory) -> str:
    """Compared without secrets, and rewritten with them, since only that seals them."""
    if _same(ours, guarded):
        return "unchanged"
    if theirs.updated_at <= ours.updated_at:
        return "kept"
    rewrite(engine, msgspec.structs.replace(theirs, revision=ours.revision), "import")
    return "updated"


def _same(one: Memory, other: Memory) -> bool:
    """Equal but for the bookkeeping, and for `superseded`, which follows from links."""
    ignored = [field.name for field in FIELDS if field.bookkeeping]
    if {one.state, other.state} == {"active", "superseded"}:
        ignored.append("state")
    return one == msgspec.structs.replace(other, **{name: getattr(one, name) for name in ignored})


def _checked(engine: Engine, memory: Memory) -> Memory:
    """An export is input like any other: everything in it is checked as if a caller had said it."""
    _check_fields(memory)
    check_memory(engine, memory)
    # `superseded` is made by links, which come later in the file.
    state = "active" if memory.state == "superseded" else memory.state
    if not 1 <= memory.revision <= contract.LARGEST_NUMBER:
        raise InvalidInput(f"revision: {memory.revision} is not a revision number, which count from 1")
    id, owner = _ours(engine, memory.id), engine.viewer or memory.owner
    return msgspec.structs.replace(memory, id=id, owner=owner, state=state)


def _ours(engine: Engine, id: str) -> str:
    """A user of a server cannot take the id of a memory that they may not see; every mention of it follows."""
    return engine.store.memories.claim(check_id(id))


def _check_fields(memory: Memory) -> None:
    source = memory.source
    fields = {name: getattr(memory, name) for name in contract.Remember.__struct_fields__ if hasattr(memory, name)}
    fields |= {"source": source.uri if source else None}
    fields |= {"start_line": source.start_line if source else None, "end_line": source.end_line if source else None}
    contract.check(contract.Remember, fields)


def _checked_history(engine: Engine, memory: Memory, history: tuple[Revision, ...]) -> tuple[Revision, ...]:
    numbers = [revision.revision for revision in history]
    if any(_ours(engine, revision.memory.id) != memory.id for revision in history):
        raise InvalidInput("its history holds revisions of another memory")
    if numbers != sorted(set(numbers)) or (numbers and not (numbers[0] >= 1 and numbers[-1] == memory.revision)):
        raise InvalidInput(f"its history has the revisions {numbers}, which do not lead up to {memory.revision}")
    for revision in history:
        _check_fields(revision.memory)
    return tuple(
        msgspec.structs.replace(
            revision,
            memory=msgspec.structs.replace(revision.memory, id=memory.id, owner=memory.owner),
        )
        for revision in history
    )


def _line(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()


def _decode(line: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInput(f"this is not JSON ({error}); an import has one JSON object a line") from None
    if not isinstance(value, dict):
        raise InvalidInput("this is JSON, but not an object; an import has one JSON object a line")
    return value


T = TypeVar("T")


def _convert(value: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(_with_times(value), kind)
    except msgspec.ValidationError as error:
        raise InvalidInput(str(error).replace("`", "")) from None


# The times of memories, revisions and links, by whatever way an export may spell them.
_TIMES = frozenset(field.name for field in FIELDS if field.kind == "time") | {"changed_at"}


# A line, its history, a revision of that, and the memory there. Deeper there is nothing that we know.
_DEPTH = 4


def _with_times(value: Any, depth: int = _DEPTH) -> Any:
    """The value with its times in UTC, or an error that says which one is none."""
    if depth and isinstance(value, list):
        return [_with_times(one, depth - 1) for one in value]
    if not depth or not isinstance(value, dict):
        return value
    return {
        name: parse_time(held, name) if name in _TIMES and isinstance(held, str) else _with_times(held, depth - 1)
        for name, held in value.items()
    }
