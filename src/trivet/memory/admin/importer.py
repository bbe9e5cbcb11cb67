"""Import of JSON Lines: an export (export_format.py says what its lines are), or plain memories.

Merge rules of an import: an id that is not here is added with its history; the same content is left as it is; other
content or another state wins if it was updated later than ours, as a new revision, and is left out otherwise. What was
forgotten there after our last change is forgotten here, which can be undone like any forgetting. Nothing is removed.
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

# One transaction each; a bad line costs only itself.
BATCH = 200


def import_lines(
    engine: Engine, lines: Iterable[str], progress: Progress | None = None
) -> Imported:
    """Takes in an export, or plain memories: lines with at least a `content`, and optionally `links`."""
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
    """Gathers new memories into batches, one transaction each; a bad line costs only itself."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._batch: dict[str, Entry] = {}
        self._links: list[tuple[int, Link]] = []
        self.counts = {"stored": 0, "unchanged": 0, "updated": 0, "kept": 0}
        self._whole = Completeness()
        self._last = 0  # the number of the line that came last
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
                f"the store that was exported could not read all it had. Missing are {', '.join(last.unreadable)}"
            )

    def check_complete(self) -> None:
        """What came before the cut is stored, since an import reads its lines once, as they come."""
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
        """A memory as this caller has it: under another id where another user's has theirs. Else as it was given."""
        ours = self._engine.store.memories.claim(id)
        return ours if ours != id and self._engine.store.memories.get_many([ours]) else id

    def _held(self, id: str) -> Memory | None:
        """One that is here and damaged is an error of this line, not of all that are stored with it."""
        try:
            return self._engine.store.memories.get(id)
        except NotFound:
            return None

    def _take(self, memory: Memory, history: tuple[Revision, ...] = ()) -> None:
        id = memory.id
        if id in self._batch or len(self._batch) >= BATCH:
            self.flush()  # before the guard looks for the secrets that this memory has already
        entry, redacted = guard(self._engine, memory, history)
        ours = self._held(id)
        if ours is None:
            self._batch[id] = entry
        else:
            done = _merge(self._engine, ours, entry.memory, memory)
            if done == "kept" and redacted and ours.owner == self._engine.viewer:
                record_guess(self._engine, ours)  # of another's memory it was noted before
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
    if request.id is None:  # by its content, so that the same file can be imported again
        scope = request.scope or engine.settings.scope
        request = msgspec.structs.replace(
            request, id=_id_by_content(engine, scope, request.content)
        )
    memory = new_memory(engine, request)
    memory = msgspec.structs.replace(memory, updated_at=memory.created_at)
    return memory, [_plain_link(memory, link) for link in links]


def _id_by_content(engine: Engine, scope: str, content: str) -> str:
    """The same id for the same text of the same user.

    It is made with what only this store knows, so that nobody can work out the id of a text that another user may have,
    and see by storing something under it whether that user has it. Ids of before were made of the text alone; where
    the caller has such a memory, it keeps its id.
    """
    secret, said = _identifying(engine, content)
    earlier = str(uuid.uuid5(uuid.NAMESPACE_URL, f"trivet-import:{scope}:{said}"))
    held = engine.store.memories.get_many([earlier]).get(earlier)
    if held is not None and engine.viewer in (None, held.owner):
        return earlier
    name = "\n".join(("trivet-import", engine.viewer or LOCAL, scope, said))
    return str(
        uuid.UUID(
            bytes=hmac.digest(secret, name.encode("utf-8", "surrogatepass"), "sha256")[:16],
            version=5,
        )
    )


def _identifying(engine: Engine, content: str) -> tuple[bytes, str]:
    """The secret behind the id, and the content or, if it holds secrets, a digest that only our key can make."""
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
    """Compared without secrets, and rewritten with them, since only that seals them."""
    if _same(ours, guarded):
        return "unchanged"
    if theirs.updated_at <= ours.updated_at:
        return "kept"
    engine.store.memories.get_for_change(ours.id, "import")
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
    check_field_bounds(memory)
    check_memory(engine, memory)
    # `superseded` is made by links, which come later in the file.
    state = "active" if memory.state == "superseded" else memory.state
    if not 1 <= memory.revision <= contract.LARGEST_NUMBER:
        raise InvalidInput(
            f"revision: {memory.revision} is not a revision number, which count from 1"
        )
    id, owner = _claimed_id(engine, memory.id), engine.viewer or memory.owner
    return msgspec.structs.replace(memory, id=id, owner=owner, state=state)


def _claimed_id(engine: Engine, id: str) -> str:
    """A user of a server cannot take the id of a memory that they may not see; every mention of it follows."""
    return engine.store.memories.claim(check_id(id))


def check_field_bounds(memory: Memory) -> None:
    """The bounds of each field, as for a caller who says it."""
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
            f"this is not JSON ({error}); an import has one JSON object a line"
        ) from None
    if not isinstance(value, dict):
        raise InvalidInput("this is JSON, but not an object; an import has one JSON object a line")
    return value


T = TypeVar("T")


def _convert(value: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(_with_times(value), prepared_type(kind))
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
        name: parse_time(held, name)
        if name in _TIMES and isinstance(held, str)
        else _with_times(held, depth - 1)
        for name, held in value.items()
    }
