"""Jupyter notebooks: what was written into their cells, on the lines on which the file has it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

from trivet.code.parse.chunks import cut
from trivet.code.parse.languages import NOTEBOOK
from trivet.code.parse.region import Region
from trivet.code.types import Chunk, LeftOut, ParsedFile

_CELL = re.compile(r'\s{0,20}"cell_type": "(\w+)"')
_SOURCE = re.compile(r'\s{0,20}"source": \[\s*$')
_LANGUAGE = re.compile(r'\s{0,20}"language": "(\w{1,20})"')
_BLANK_LINES = re.compile(r"\n{3,}")


def parse_notebook(path: str, lines: Sequence[str]) -> ParsedFile | LeftOut:
    """Chunks of cells. The lines of outputs and pictures are empty in them; the numbers of lines stay the file's."""
    cells = list(_written(lines))
    if not cells:
        return LeftOut(path, "no cell of it could be read")
    words, code = [""] * len(lines), [""] * len(lines)
    for place, kind, line in cells:
        words[place] = line
        code[place] = line if kind == "code" else ""
    regions = _definitions(lines, code)
    return ParsedFile(
        language=NOTEBOOK,
        definitions=tuple(one.definition for one in regions if one.definition is not None),
        chunks=tuple(map(_dense, cut(words, regions))),
    )


def _written(lines: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """The place, the kind of cell and the text of each line that somebody wrote."""
    kind, inside = "", False
    for place, line in enumerate(lines):
        if inside:
            inside = not line.lstrip().startswith("]")
            if inside:
                yield place, kind, _unquoted(line)
        elif (cell := _CELL.match(line)) is not None:
            kind = cell[1]
        else:
            inside = _SOURCE.match(line) is not None


def _unquoted(line: str) -> str:
    try:
        return msgspec.json.decode(line.strip().removesuffix(","), type=str).rstrip("\n").replace("\n", " ")
    except msgspec.DecodeError:
        return line.strip()


def _definitions(lines: Sequence[str], code: Sequence[str]) -> list[Region]:
    from trivet.code.parse.trees import has_grammar, regions_of

    named = (_LANGUAGE.match(line) for line in lines[-60:])
    language = next((one[1].lower() for one in named if one is not None), "python")
    return (regions_of(language, "\n".join(code).encode()) or []) if has_grammar(language) else []


def _dense(chunk: Chunk) -> Chunk:
    return msgspec.structs.replace(chunk, text=_BLANK_LINES.sub("\n\n", chunk.text).strip("\n"))
