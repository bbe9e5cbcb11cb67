"""A plain text: one part, or as many as it takes."""

from __future__ import annotations

from collections.abc import Iterator

from trivet.sources.files.cut import cuts, pieces
from trivet.sources.files.values import About, Part


def read_plain(name: str, text: str) -> Iterator[Part]:
    title = name.rpartition("/")[2].rpartition(".")[0]
    position = 0
    for number, (cut, piece) in enumerate(zip(cuts(text), pieces(text), strict=True), 1):
        position = text.index(cut, position)
        row = text.count("\n", 0, position) + 1
        position += len(cut)
        lines = (row, row + cut.count("\n"))
        yield Part(str(number), piece, {"title": title[:300]}, lines, About(note=title))
