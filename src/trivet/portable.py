"""Export and import as JSON Lines: a header, then one memory with its history a line, then one link a line.

Merge rules of an import: an id that is not here is added with its history; the same content is left as it is; other
content wins if it was updated later than ours, as a new revision, and is left out otherwise. Nothing is deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

import msgspec

from trivet import contract
from trivet.clock import parse_time
from trivet.engine import Engine
from trivet.errors import InvalidInput, TrivetError
from trivet.ids import check_id
from trivet.remember import check_memory, document_of, new_memory, rewrite
from trivet.types import Imported, Link, Memory, Revision

FORMAT = 1
# One transaction each; a bad line costs only itself.
BATCH = 200

Progress = Callable[[int], None]


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
    stats = engine.store.memories.stats()
    left_out = 0 if include_sensitive else _sensitive(engine)
    total = sum(stats.memories.values()) - left_out
    yield _line(Header(FORMAT, total, stats.links, left_out))
    exported: set[str] = set()
    for memory in engine.store.memories.everything():
        if memory.sensitive and not include_sensitive:
            continue
        exported.add(memory.id)
        yield _line(MemoryLine(memory, engine.store.memories.revisions(memory.id)))
    for link in engine.store.links.everything():
        if link.source in exported and link.target in exported:
            yield _line(LinkLine(link))


def import_lines(engine: Engine, lines: Iterable[str], progress: Progress | None = None) -> Imported:
    """Takes in an export, or plain memories: lines with at least a `content`, and optionally `links`."""
    engine.embedding.adopt()
    tally = _Tally()
    links: list[tuple[int, Link]] = []
    for number, line in enumerate(lines, 1):
        if line.strip():
            try:
                links.extend((number, link) for link in _take(engine, line, number, tally))
            except TrivetError as error:
                tally.errors.append(f"line {number}: {error}")
        if progress is not None:
            progress(1)
    for number, link in links:  # after all memories, since a link may point forward
        try:
            engine.store.links.add(link)
            tally.links += 1
        except TrivetError as error:
            tally.errors.append(f"line {number}: {error}")
    engine.worker.wake()
    return tally.result()


class _Tally:
    def __init__(self) -> None:
        self.counts = {"stored": 0, "unchanged": 0, "updated": 0, "kept": 0}
        self.links = 0
        self.errors: list[str] = []

    def result(self) -> Imported:
        return Imported(**self.counts, links=self.links, errors=tuple(self.errors))


def _take(engine: Engine, line: str, number: int, tally: _Tally) -> list[Link]:
    value = _decode(line)
    if "trivet_export" in value:
        header = _convert(value, Header)
        if header.trivet_export > FORMAT:
            raise InvalidInput(f"the export has format {header.trivet_export}, this Trivet reads up to {FORMAT}")
        return []
    if "link" in value:
        link = _convert(value, LinkLine).link
        check_id(link.source, "source")
        check_id(link.target, "target")
        return [link]
    if "memory" in value:
        entry = _convert(value, MemoryLine)
        tally.counts[_merge(engine, _checked(engine, entry.memory), entry.history)] += 1
        return []
    return _take_plain(engine, value, tally)


def _take_plain(engine: Engine, value: dict[str, Any], tally: _Tally) -> list[Link]:
    links = value.pop("links", [])
    source = value.pop("source", None)
    if isinstance(source, dict):
        value |= {
            "source": source.get("uri"),
            "start_line": source.get("start_line"),
            "end_line": source.get("end_line"),
        }
    elif source is not None:
        value["source"] = source
    memory = new_memory(engine, contract.check(contract.Remember, value))
    memory = msgspec.structs.replace(memory, updated_at=memory.created_at)
    tally.counts[_merge(engine, memory, ())] += 1
    return [_plain_link(memory, link) for link in links]


def _plain_link(memory: Memory, link: Any) -> Link:
    entry: dict[str, Any] = {"source": memory.id, "created_at": memory.created_at}
    if isinstance(link, dict):
        entry |= {"kind": link.get("kind"), "target": link.get("to") or link.get("target")}
    return _convert(entry, Link)


def _merge(engine: Engine, memory: Memory, history: tuple[Revision, ...]) -> str:
    ours = engine.store.memories.get_many([memory.id]).get(memory.id)
    if ours is None:
        engine.store.memories.add(memory, document_of(memory))
        if history:
            engine.store.memories.adopt_history(memory.id, history)
        return "stored"
    if _same(ours, memory):
        return "unchanged"
    if memory.updated_at <= ours.updated_at:
        return "kept"
    rewrite(engine, msgspec.structs.replace(memory, revision=ours.revision), "import")
    return "updated"


def _same(one: Memory, other: Memory) -> bool:
    """Equal but for the bookkeeping, and for `superseded`, which follows from links."""
    blank = {"revision": 0, "updated_at": "", "created_at": ""}
    if {one.state, other.state} == {"active", "superseded"}:
        blank["state"] = "active"
    return msgspec.structs.replace(one, **blank) == msgspec.structs.replace(other, **blank)


def _checked(engine: Engine, memory: Memory) -> Memory:
    """An export is input like any other: everything in it is checked as if a caller had said it."""
    source = memory.source
    fields = {name: getattr(memory, name) for name in contract.Remember.__struct_fields__ if hasattr(memory, name)}
    fields |= {"source": source.uri if source else None}
    fields |= {"start_line": source.start_line if source else None, "end_line": source.end_line if source else None}
    contract.check(contract.Remember, fields)
    check_memory(engine, memory)
    times = {name: parse_time(getattr(memory, name), name) for name in ("created_at", "updated_at")}
    for name in ("valid_from", "valid_to"):
        if getattr(memory, name) is not None:
            times[name] = parse_time(getattr(memory, name), name)
    # `superseded` is made by links, which come later in the file.
    state = "active" if memory.state == "superseded" else memory.state
    return msgspec.structs.replace(memory, id=check_id(memory.id), state=state, **times)


def _sensitive(engine: Engine) -> int:
    return sum(memory.sensitive for memory in engine.store.memories.everything())


def _line(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()


def _decode(line: str) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError) as error:
        raise InvalidInput(f"this is not JSON ({error}); an import has one JSON object a line") from None
    if not isinstance(value, dict):
        raise InvalidInput("this is JSON, but not an object; an import has one JSON object a line")
    return value


T = TypeVar("T")


def _convert(value: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise InvalidInput(str(error).replace("`", "")) from None
