"""Import of JSON Lines: an export (see export.py), or plain memories.

New ids are added with their history; other content wins as a new revision if updated later than
ours. What the exporting store forgot later is forgotten here. Nothing is purged.
"""

from __future__ import annotations

import hashlib
import hmac
import uuid
from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeVar

import msgspec

from trivet import contract
from trivet.common.clock import parse_time
from trivet.common.ids import check_id
from trivet.common.threads import prepared_type
from trivet.errors import InvalidInput, NotFound, TrivetError
from trivet.memory.admin.export import FORMAT, Completeness, Footer, Header, LinkLine, MemoryLine
from trivet.memory.engine import Engine
from trivet.memory.remember import check_memory, guard, new_memory, rewrite
from trivet.memory.sealed_secrets import add_entries, record_guess
from trivet.memory_fields import FIELDS
from trivet.store.records import Entry
from trivet.types import LOCAL, Imported, Link, Memory, Progress, Revision

# Memories per transaction.
BATCH = 200


def import_lines(
    engine: Engine, lines: Iterable[str], progress: Progress | None = None
) -> Imported:
    """Import an export, or lines with a `content` and optional `links`."""
    intake = _Importer(engine)
    for number, line in enumerate(lines, 1):
        if line.strip():
            intake.line(number, line)
        if progress is not None:
            progress(1)
    intake.flush()
    intake.add_links()  # after all memories, since a link may point forward
    intake.check_complete()
    engine.worker.wake()
    return Imported(
        **intake.counts,
        links=intake.links_added,
        errors=tuple(intake.errors),
        redacted=dict(intake.redacted),
    )


class _Importer:
    """An import in progress, which reports and skips bad lines."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._batch: dict[str, Entry] = {}
        self._links: list[tuple[int, Link]] = []
        self.counts = {"stored": 0, "unchanged": 0, "updated": 0, "kept": 0}
        self._whole = Completeness()
        self._last = 0  # number of the latest line
        self.links_added = 0
        self.errors: list[str] = []
        self.redacted: Counter[str] = Counter()

    def line(self, number: int, line: str) -> None:
        self._last = number
        try:
            value = _decode(line)
            if "trivet_export" in value:
                self._whole.header(_checked_header(value))
            elif "trivet_export_end" in value:
                self._end(_convert(value, Footer))
            elif "link" in value:
                self._whole.line(line, "links")
                self._links.append((number, _checked_link(_convert(value, LinkLine).link)))
            elif "memory" in value:
                self._whole.line(line, "memories")
                entry = _convert(value, MemoryLine)
                memory = _checked(self._engine, entry.memory)
                self._take(memory, _checked_history(self._engine, memory, entry.history))
            else:
                memory, links = _plain(self._engine, value)
                self._take(memory)
                self._links.extend((number, link) for link in links)
        except TrivetError as error:
            self.errors.append(f"line {number}: {self._engine.guard.without_secrets(str(error))}")

    def _end(self, last: Footer) -> None:
        self._whole.last_line(last)
        if last.unreadable:
            raise InvalidInput(
                "the exporting store could not read everything. Missing are "
                f"{', '.join(last.unreadable)}"
            )

    def check_complete(self) -> None:
        trouble = self._whole.trouble()
        if trouble is not None:
            self.errors.append(
                f"line {self._last}: {trouble}. What came is stored; import the whole export again."
            )

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
                self.links_added += self._engine.store.links.add(
                    msgspec.structs.replace(link, **ends)
                )
            except TrivetError as error:
                self.errors.append(
                    f"line {number}: {self._engine.guard.without_secrets(str(error))}"
                )

    def _named(self, id: str) -> str:
        """Return this caller's id if another user has the given one."""
        ours = self._engine.store.memories.claim(id)
        return ours if ours != id and self._engine.store.memories.get_many([ours]) else id

    def _held(self, id: str) -> Memory | None:
        try:
            return self._engine.store.memories.get(id)
        except NotFound:
            return None

    def _take(self, memory: Memory, history: tuple[Revision, ...] = ()) -> None:
        id = memory.id
        if id in self._batch or len(self._batch) >= BATCH:
            self.flush()  # so that the guard finds the secrets of an earlier line with this id
        entry, redacted = guard(self._engine, memory, history)
        ours = self._held(id)
        if ours is None:
            self._batch[id] = entry
        else:
            done = _merge(self._engine, ours, entry.memory, memory)
            if done == "kept" and redacted and ours.owner == self._engine.viewer:
                record_guess(self._engine, ours)  # the guard records it for others' memories
            self.counts[done] += 1
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
    if request.id is None:  # derived from the content, so that a file can be imported again
        scope = request.scope or engine.settings.scope
        request = msgspec.structs.replace(
            request, id=_id_by_content(engine, scope, request.content)
        )
    memory = new_memory(engine, request)
    memory = msgspec.structs.replace(memory, updated_at=memory.created_at)
    return memory, [_plain_link(memory, link) for link in links]


def _id_by_content(engine: Engine, scope: str, content: str) -> str:
    """Return the same id for the same text of the same user.

    A secret of this store goes into it: otherwise a user could compute a text's id and test whether
    another user has it.
    """
    secret, identity = _identifying(engine, content)
    earlier = str(uuid.uuid5(uuid.NAMESPACE_URL, f"trivet-import:{scope}:{identity}"))
    held = engine.store.memories.get_many([earlier]).get(earlier)
    if held is not None and engine.viewer in (None, held.owner):
        return earlier
    name = "\n".join(("trivet-import", engine.viewer or LOCAL, scope, identity))
    return str(
        uuid.UUID(
            bytes=hmac.digest(secret, name.encode("utf-8", "surrogatepass"), "sha256")[:16],
            version=5,
        )
    )


def _identifying(engine: Engine, content: str) -> tuple[bytes, str]:
    if not engine.guard.spans(content):
        return engine.store.upkeep.salt(), content
    key = engine.guard.keys.current().secret
    return key, hmac.new(key, content.encode(), hashlib.sha256).hexdigest()


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


def _checked_header(value: dict[str, Any]) -> Header:
    header = _convert(value, Header)
    if header.trivet_export > FORMAT:
        raise InvalidInput(
            f"the export has format {header.trivet_export}, this Trivet reads up to {FORMAT}"
        )
    return header


def _merge(engine: Engine, ours: Memory, guarded: Memory, theirs: Memory) -> str:
    """Compare without secrets, but rewrite with them."""
    if _same(ours, guarded):
        return "unchanged"
    if theirs.updated_at <= ours.updated_at:
        return "kept"
    engine.store.memories.get_for_change(ours.id, "import")
    rewrite(engine, msgspec.structs.replace(theirs, revision=ours.revision), "import")
    return "updated"


def _same(one: Memory, other: Memory) -> bool:
    ignored = [field.name for field in FIELDS if field.bookkeeping]
    if {one.state, other.state} == {"active", "superseded"}:
        ignored.append("state")
    return one == msgspec.structs.replace(other, **{name: getattr(one, name) for name in ignored})


def _checked(engine: Engine, memory: Memory) -> Memory:
    check_field_bounds(memory)
    check_memory(engine, memory)
    # Links later in the file make it superseded.
    state = "active" if memory.state == "superseded" else memory.state
    if not 1 <= memory.revision <= contract.LARGEST_NUMBER:
        raise InvalidInput(f"revision: {memory.revision} is not a revision number; they start at 1")
    id, owner = _claimed_id(engine, memory.id), engine.viewer or memory.owner
    return msgspec.structs.replace(memory, id=id, owner=owner, state=state)


def _claimed_id(engine: Engine, id: str) -> str:
    """Replace an id that belongs to a memory the caller cannot see."""
    return engine.store.memories.claim(check_id(id))


def check_field_bounds(memory: Memory) -> None:
    source = memory.source
    fields = {
        name: getattr(memory, name)
        for name in contract.Remember.__struct_fields__
        if hasattr(memory, name)
    }
    fields |= {"source": source.uri if source else None}
    fields |= {
        "start_line": source.start_line if source else None,
        "end_line": source.end_line if source else None,
    }
    contract.check(contract.Remember, fields)


def _checked_history(
    engine: Engine, memory: Memory, history: tuple[Revision, ...]
) -> tuple[Revision, ...]:
    numbers = [revision.revision for revision in history]
    if any(_claimed_id(engine, revision.memory.id) != memory.id for revision in history):
        raise InvalidInput("its history holds revisions of another memory")
    if numbers != sorted(set(numbers)) or (
        numbers and not (numbers[0] >= 1 and numbers[-1] == memory.revision)
    ):
        raise InvalidInput(
            f"its history has the revisions {numbers}, which do not lead up to {memory.revision}"
        )
    for revision in history:
        check_field_bounds(revision.memory)
    return tuple(
        msgspec.structs.replace(
            revision,
            memory=msgspec.structs.replace(revision.memory, id=memory.id, owner=memory.owner),
        )
        for revision in history
    )


def _decode(line: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInput(
            f"this is not JSON ({error}); an import has one JSON object per line"
        ) from None
    if not isinstance(value, dict):
        raise InvalidInput("this JSON is not an object; an import has one JSON object per line")
    return value


T = TypeVar("T")


def _convert(value: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(_with_times(value), prepared_type(kind))
    except msgspec.ValidationError as error:
        raise InvalidInput(str(error).replace("`", "")) from None


_TIMES = frozenset(field.name for field in FIELDS if field.kind == "time") | {"changed_at"}


# Line, history, revision, memory.
_DEPTH = 4


def _with_times(value: Any, depth: int = _DEPTH) -> Any:
    if depth and isinstance(value, list):
        return [_with_times(one, depth - 1) for one in value]
    if not depth or not isinstance(value, dict):
        return value
    return {
        name: parse_time(held, name)
        if name in _TIMES and isinstance(held, str)
        else _with_times(held, depth - 1)
        for name, held in value.items()
    }
