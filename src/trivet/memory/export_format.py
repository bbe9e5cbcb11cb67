"""The lines of an export: a header, memories with their history, links, and a last line by which a cut is noticed.

The last line holds how many memories and links came before it, and a checksum over them that does not depend on their
order. Exports of format 1 had no last line; of those the counts in the header are compared.
"""

from __future__ import annotations

import hashlib

import msgspec

from trivet.types import Link, Memory, Revision

FORMAT = 2
# The first whose exports end with a last line.
WITH_LAST_LINE = 2
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


class LastLine(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    trivet_export_end: int
    memories: int
    links: int
    checksum: str
    unreadable: tuple[str, ...] = ()  # what the exporting store could not read and left out


def line_of(value: msgspec.Struct) -> str:
    return msgspec.json.encode(value).decode()


class Checksum:
    """The sum of the digests of lines: the same in whatever order they come."""

    def __init__(self) -> None:
        self._sum = 0

    def add(self, line: str) -> None:
        digest = hashlib.sha256(line.strip().encode("utf-8", "surrogatepass")).digest()
        self._sum = (self._sum + int.from_bytes(digest)) % 2**_CHECKSUM_BITS

    def add_sum(self, text: str) -> None:
        """What another checksum came to, in the hexadecimal digits of its last line."""
        self._sum = (self._sum + int(text, 16)) % 2**_CHECKSUM_BITS

    def __str__(self) -> str:
        return f"{self._sum:0{_CHECKSUM_BITS // 4}x}"


class Completeness:
    """Compares what came with what the headers and last lines say. Several exports may come one after the other."""

    def __init__(self) -> None:
        self._came, self._announced = Checksum(), Checksum()
        self._counts = {"memories": 0, "links": 0}
        self._expected = {"memories": 0, "links": 0}
        self._headers = self._with_last_line = self._last_lines = 0

    def header(self, header: Header) -> None:
        self._headers += 1
        if header.trivet_export >= WITH_LAST_LINE:
            self._with_last_line += 1
        else:
            self._expect(header)

    def last_line(self, last: LastLine) -> None:
        self._last_lines += 1
        self._announced.add_sum(last.checksum)
        self._expect(last)

    def line(self, line: str, kind: str) -> None:
        self._counts[kind] += 1
        self._came.add(line)

    def trouble(self) -> str | None:
        """What is missing or changed, once all lines have come."""
        if not self._headers and not self._last_lines:
            return None  # lines of no export: nothing was announced
        if self._last_lines < self._with_last_line:
            return "the export is cut off here: its last line is missing"
        for kind, expected in self._expected.items():
            if self._counts[kind] != expected:
                return f"the export is not whole: {self._counts[kind]} {kind} came of {expected}"
        of_one_kind = self._last_lines == self._with_last_line == self._headers
        if of_one_kind and str(self._came) != str(self._announced):
            return "the export was changed: its lines do not make the checksum of its last line"
        return None

    def _expect(self, counts: Header | LastLine) -> None:
        self._expected["memories"] += counts.memories
        self._expected["links"] += counts.links
