"""The systems to import from, and their memories as lines of an import."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime

import msgspec

from trivet.common.clock import moment, now, parse_time
from trivet.errors import InvalidInput
from trivet.memory.admin.export import LinkLine, MemoryLine
from trivet.sources.files.parts import pieces
from trivet.sources.other_memories import basic_memory
from trivet.sources.other_memories.claude import CLAUDE_MEM, CLAUDE_MEMORY_MCP
from trivet.sources.other_memories.foreign import ForeignMemory, ForeignSystem, SystemName
from trivet.sources.other_memories.json_exports import AGENTMEMORY, MEM0, REFERENCE_SERVER
from trivet.types import Link, LinkKind, Memory

SYSTEMS: Mapping[SystemName, ForeignSystem] = {
    "mcp-memory": REFERENCE_SERVER,
    "claude-memory-mcp": CLAUDE_MEMORY_MCP,
    "mem0": MEM0,
    "basic-memory": basic_memory.SYSTEM,
    "claude-mem": CLAUDE_MEM,
    "agentmemory": AGENTMEMORY,
}
_IDS = uuid.uuid5(uuid.NAMESPACE_URL, "trivet-foreign")
LONGEST_TITLE, LONGEST_TAG, MAX_TAGS = 300, 64, 50


def import_lines(
    system: SystemName, found: Iterable[ForeignMemory], scope: str, categories: Sequence[str]
) -> Iterator[str]:
    """Yield lines with ids derived from the system, so that imports can be repeated."""
    known: set[str] = set()
    links: list[Link] = []
    for one in found:
        first = ""
        for number, piece in enumerate(pieces(one.content), 1):
            memory = _memory(system, one, piece, number, scope, categories)
            yield msgspec.json.encode(MemoryLine(memory)).decode()
            known.add(memory.id)
            if number > 1:
                links.append(
                    Link(
                        kind="part-of", source=memory.id, target=first, created_at=memory.created_at
                    )
                )
            first = first or memory.id
        links += [_link(system, one, kind, target) for kind, target in one.links]
    for link in links:
        if link.target in known and link.source in known and link.source != link.target:
            yield msgspec.json.encode(LinkLine(link)).decode()


def _memory(
    system: SystemName,
    one: ForeignMemory,
    content: str,
    number: int,
    scope: str,
    categories: Sequence[str],
) -> Memory:
    created = _time(one.created_at) or moment(now())
    tags = [*one.tags, *([one.category] if one.category not in categories else [])]
    return Memory(
        id=_id(system, one.key, number),
        content=content,
        title=" ".join(one.title.split())[:LONGEST_TITLE] or None,
        category=one.category if one.category in categories else categories[0],
        tags=_short(tags),
        importance=one.importance,
        confidence=one.confidence,
        expanded_keywords=_short(one.keywords),
        scope=scope,
        created_at=created,
        updated_at=max(created, _time(one.updated_at) or created),
        valid_to=_time(one.valid_to),
        sensitive=one.sensitive,
    )


def _link(system: SystemName, one: ForeignMemory, kind: LinkKind, target: str) -> Link:
    made = _time(one.created_at) or moment(now())
    return Link(
        kind=kind, source=_id(system, one.key, 1), target=_id(system, target, 1), created_at=made
    )


def _id(system: SystemName, key: str, number: int) -> str:
    try:
        own = str(uuid.UUID(key)) if number == 1 else ""
    except ValueError:
        own = ""
    return own or str(uuid.uuid5(_IDS, f"{system}\n{key}\n{number}"))


def _short(words: Sequence[str]) -> tuple[str, ...]:
    kept = (word.strip()[:LONGEST_TAG] for word in words)
    return tuple(dict.fromkeys(word for word in kept if word))[:MAX_TAGS]


def _time(text: str | None) -> datetime | None:
    if text is None:
        return None
    try:
        return moment(parse_time(text.strip().replace(" UTC", "Z"), "time"))
    except InvalidInput:
        return None
