"""Lines of JSON on their way: an import as a body in pieces, an export as the lines in what arrives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trivet.errors import StoreError
from trivet.types import Progress

# How an export begins and ends; those of format 1 had no last line.
_HEADER = b'{"trivet_export":'
_WITHOUT_LAST_LINE = b'{"trivet_export":1,'
_LAST_LINE = b'{"trivet_export_end":'
CHUNK_BYTES = 64 * 1024


def chunks(lines: Iterable[str], progress: Progress | None) -> Iterator[bytes]:
    """Some lines at a time. A line break within a line of JSON means no more than a space.

    What is no Unicode goes as it is: the server says of which line.
    """
    piece, count = bytearray(), 0
    for line in lines:
        piece += line.rstrip("\r\n").replace("\r", " ").replace("\n", " ").encode(errors="surrogatepass") + b"\n"
        count += 1
        if len(piece) >= CHUNK_BYTES:
            yield bytes(piece)
            _tell(progress, count)
            piece, count = bytearray(), 0
    if piece:
        yield bytes(piece)
        _tell(progress, count)


class Lines:
    """Puts the lines of an export together from pieces.

    Only a line feed ends one: texts hold other characters that look like it.
    """

    def __init__(self) -> None:
        self._begun = b""
        self._ends = False  # whether a last line is to come
        self._latest = b""

    def of(self, piece: bytes) -> list[str]:
        *whole, self._begun = (self._begun + piece).split(b"\n")
        for line in whole:
            self._ends |= line.startswith(_HEADER) and not line.startswith(_WITHOUT_LAST_LINE)
            self._latest = line
        return [line.decode() for line in whole]

    def last(self) -> list[str]:
        """What came after the last line feed. A proxy may end a broken answer as if it were whole; the export tells."""
        if self._ends and not (self._begun or self._latest).startswith(_LAST_LINE):
            raise StoreError("The export came without its last line, so it is not whole. Begin it again.")
        return [self._begun.decode()] if self._begun else []


def _tell(progress: Progress | None, count: int) -> None:
    if progress is not None:
        progress(count)
