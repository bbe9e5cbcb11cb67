"""Export as JSON Lines: a header, memories with their history, links, and a last line.

The last line's counts and checksum reveal a truncated export.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

import msgspec

from trivet.errors import Damaged, NotFound
from trivet.memory.engine import Engine
from trivet.types import Link, Memory, Revision


def export_lines(engine: Engine, include_sensitive: bool) -> Iterator[str]:
    """Yield lines without line ends; sensitive memories only on request."""
    damaged: dict[str, None] = {}
    kept: set[str] = set()
    left_out = 0
    for memory in engine.store.memories.readable(damaged.setdefault):
        if include_sensitive or not memory.sensitive:
            kept.add(memory.id)
        else:
            left_out += 1
    links = [
        link
        for link in engine.store.links.readable(damaged.setdefault)
        if {link.source, link.target} <= kept
    ]
    yield line_of(Header(FORMAT, len(kept), len(links), left_out))
    checksum, count = Checksum(), 0
    for memory in engine.store.memories.readable(damaged.setdefault):
        line = (
            _memory_line(engine, memory, include_sensitive, damaged) if memory.id in kept else None
        )
        if line is not None:
            text = line_of(line)
            checksum.add(text)
            count += 1
            yield text
    for link in links:
        text = line_of(LinkLine(link))
        checksum.add(text)
        yield text
    yield line_of(Footer(FORMAT, count, len(links), str(checksum), tuple(damaged)))


def _memory_line(
    engine: Engine, memory: Memory, include_sensitive: bool, damaged: dict[str, None]
) -> MemoryLine | None:
    try:
        history = engine.store.memories.revisions(memory.id)
    except NotFound:
        return None
    except Damaged:  # the current memory is still worth exporting
        damaged.setdefault(f"the history of {memory.id}")
        return MemoryLine(memory)
    # Earlier revisions may be sensitive, and others see only the current one.
    if not include_sensitive or engine.viewer not in (None, memory.owner):
        history = tuple(revision for revision in history if not revision.memory.sensitive)
    return MemoryLine(memory, history)


FORMAT = 2
FIRST_FORMAT_WITH_FOOTER = 2
_CHECKSUM_BITS = 256


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


class Footer(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    trivet_export_end: int
    memories: int
    links: int
    checksum: str
    unreadable: tuple[str, ...] = ()  # what the exporting store could not read


def line_of(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()


class Checksum:
    """A sum of the digests of lines, whatever their order."""

    def __init__(self) -> None:
        self._sum = 0

    def add(self, line: str) -> None:
        digest = hashlib.sha256(line.strip().encode("utf-8", "surrogatepass")).digest()
        self._sum = (self._sum + int.from_bytes(digest)) % 2**_CHECKSUM_BITS

    def add_sum(self, text: str) -> None:
        self._sum = (self._sum + int(text, 16)) % 2**_CHECKSUM_BITS

    def __str__(self) -> str:
        return f"{self._sum:0{_CHECKSUM_BITS // 4}x}"


class Completeness:
    def __init__(self) -> None:
        self._came, self._announced = Checksum(), Checksum()
        self._counts = {"memories": 0, "links": 0}
        self._expected = {"memories": 0, "links": 0}
        self._headers = self._with_last_line = self._last_lines = 0

    def header(self, header: Header) -> None:
        self._headers += 1
        if header.trivet_export >= FIRST_FORMAT_WITH_FOOTER:
            self._with_last_line += 1
        else:
            self._expect(header)

    def last_line(self, last: Footer) -> None:
        self._last_lines += 1
        self._announced.add_sum(last.checksum)
        self._expect(last)

    def line(self, line: str, kind: str) -> None:
        self._counts[kind] += 1
        self._came.add(line)

    def trouble(self) -> str | None:
        if not self._headers and not self._last_lines:
            return None  # plain lines without a header announce nothing
        if self._last_lines < self._with_last_line:
            return "the export is cut off here: its last line is missing"
        for kind, expected in self._expected.items():
            if self._counts[kind] != expected:
                return f"the export is incomplete: {self._counts[kind]} of {expected} {kind} came"
        of_one_kind = self._last_lines == self._with_last_line == self._headers
        if of_one_kind and str(self._came) != str(self._announced):
            return "the export was changed: its lines do not match the checksum in its last line"
        return None

    def _expect(self, counts: Header | Footer) -> None:
        self._expected["memories"] += counts.memories
        self._expected["links"] += counts.links
