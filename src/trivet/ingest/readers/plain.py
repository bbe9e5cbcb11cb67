"""A plain text: one part, or as many as it takes."""

from __future__ import annotations

from collections.abc import Iterator

from trivet.ingest.cut import pieces
from trivet.ingest.values import About, Part


def read_plain(name: str, text: str) -> Iterator[Part]:
    title = name.rpartition("/")[2].rpartition(".")[0]
    position = 0
    for number, piece in enumerate(pieces(text), 1):
        position = text.index(piece, position)
        row = text.count("\n", 0, position) + 1
        position += len(piece)
        lines = (row, row + piece.count("\n"))
        yield Part(str(number), piece, {"title": title[:300]}, lines, About(note=title))
