"""Lines of JSON on their way: an import as a body in pieces, an export as the lines in what arrives."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from trivet.types import Progress

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
    """Puts lines together from pieces. Only a line feed ends one: texts hold other characters that look like it."""

    def __init__(self) -> None:
        self._begun = b""

    def of(self, piece: bytes) -> list[str]:
        *whole, self._begun = (self._begun + piece).split(b"\n")
        return [line.decode() for line in whole]

    def last(self) -> list[str]:
        return [self._begun.decode()] if self._begun else []


def _tell(progress: Progress | None, count: int) -> None:
    if progress is not None:
        progress(count)
