"""Regions of prose and configuration, by headings and keys; and notebooks, by cells."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import msgspec

from trivet.code.file_kind import (
    ASCIIDOC,
    INI,
    JSON,
    LATEX,
    MARKDOWN,
    NOTEBOOK,
    ORG,
    RST,
    TOML,
    YAML,
)
from trivet.code.parse.chunks import Region, cut
from trivet.code.types import Chunk, LeftOut, ParsedFile

_NAME_CHARACTERS = 100
_HASHES = re.compile(r"(#{1,6})[ \t]+(\S[^\n]*)")
_EQUALS = re.compile(r"(={1,6})[ \t]+(\S[^\n]*)")
_STARS = re.compile(r"(\*{1,8})[ \t]+(\S[^\n]*)")
_COMMAND = re.compile(
    r"\s{0,8}\\(part|chapter|section|subsection|subsubsection|paragraph)\*?\{([^}\n]{1,200})"
)
_COMMANDS = ("part", "chapter", "section", "subsection", "subsubsection", "paragraph")
_SETEXT = re.compile(r"(?:={3,}|-{3,})\s*$")
_FENCE = re.compile(r"\s{0,3}(```|~~~)")
_UNDERLINE = re.compile(r"([=\-~^\"'`#*+:.<>_])\1{2,}\s*$")
_KEY = {
    YAML: re.compile(
        r"([^\s#:'\"{}\[\]\-][^#:\n]{0,100}|\"[^\"\n]{1,100}\"|'[^'\n]{1,100}'):(?=\s|$)"
    ),
    TOML: re.compile(r"\[{1,2}([^\]\n]{1,100})\]"),
    INI: re.compile(r"\[([^\]\n]{1,100})\]"),
    JSON: re.compile(r"(?:\t| {1,4})\"([^\"\n]{1,100})\"\s{0,8}:"),
}

_Heading = tuple[int, int, str]  # line from 1, level from 1, text


def sections(language: str, lines: Sequence[str]) -> list[Region]:
    """Return sections, named by their headings: `Install > From source`."""
    find = _FINDERS.get(language)
    return [] if find is None else _nested(list(find(lines)), len(lines))


def _nested(headings: Sequence[_Heading], last: int) -> list[Region]:
    ends = [last] * len(headings)
    path: list[int] = []  # positions of the enclosing headings
    regions: list[tuple[str, str]] = []
    for place, (line, level, words) in enumerate(headings):
        while path and headings[path[-1]][1] >= level:
            ends[path.pop()] = line - 1
        path.append(place)
        around = [headings[outer][2] for outer in path[-4:]]
        regions.append((" > ".join(around), words))
    return [
        Region(
            top=line,
            start=line,
            end=ends[place],
            kind="section",
            name=regions[place][0],
            signature=words,
        )
        for place, (line, _, words) in enumerate(headings)
    ]


def _marked(pattern: re.Pattern[str]) -> Callable[[Sequence[str]], Iterator[_Heading]]:
    """Find headings whose level is their number of marks, outside fenced code."""

    def find(lines: Sequence[str]) -> Iterator[_Heading]:
        fence = ""
        for number, line in enumerate(lines, 1):
            if (mark := _FENCE.match(line)) is not None:
                fence = "" if fence == mark[1] else fence or mark[1]
            elif not fence and (heading := pattern.match(line)) is not None:
                yield number, len(heading[1]), _plain(heading[2])

    return find


def _markdown(lines: Sequence[str]) -> Iterator[_Heading]:
    underlined = (
        (number, 1 if lines[number].startswith("=") else 2, _plain(lines[number - 1]))
        for number in range(_behind_front_matter(lines), len(lines))
        if _SETEXT.match(lines[number]) is not None and lines[number - 1][:1].isalnum()
    )
    yield from sorted((*_marked(_HASHES)(lines), *underlined))


def _behind_front_matter(lines: Sequence[str]) -> int:
    if not lines or lines[0].rstrip() != "---":
        return 1
    return next(
        (number + 1 for number in range(1, len(lines)) if lines[number].rstrip() == "---"), 1
    )


def _underlined(lines: Sequence[str]) -> Iterator[_Heading]:
    """Number kinds of underline in order of appearance, as reStructuredText does."""
    levels: dict[str, int] = {}
    for number in range(1, len(lines)):
        underline, title = lines[number], lines[number - 1].strip()
        if not underline or underline[0].isalnum() or (mark := _UNDERLINE.match(underline)) is None:
            continue
        if not title or _UNDERLINE.match(title) or len(underline.rstrip()) < len(title) - 2:
            continue
        above = number >= 2 and lines[number - 2].rstrip() == underline.rstrip()
        level = levels.setdefault(mark[1] + "over" * above, len(levels) + 1)
        yield number - above, level, _plain(title)


def _latex(lines: Sequence[str]) -> Iterator[_Heading]:
    for number, line in enumerate(lines, 1):
        if (command := _COMMAND.match(line)) is not None:
            yield number, _COMMANDS.index(command[1]) + 1, _plain(command[2])


def _keys(language: str) -> Callable[[Sequence[str]], Iterator[_Heading]]:
    pattern = _KEY[language]

    def find(lines: Sequence[str]) -> Iterator[_Heading]:
        indentation = 0
        for number, line in enumerate(lines, 1):
            key = pattern.match(line)
            if key is None:
                continue
            inner = len(line) - len(line.lstrip())
            indentation = indentation or inner
            if inner <= indentation:
                yield number, 1, _plain(key[1])

    return find


def _plain(words: str) -> str:
    return words.strip().strip("#=*`\"'[]").strip()[:_NAME_CHARACTERS]


_FINDERS: dict[str, Callable[[Sequence[str]], Iterator[_Heading]]] = {
    MARKDOWN: _markdown,
    ASCIIDOC: _marked(_EQUALS),
    ORG: _marked(_STARS),
    RST: _underlined,
    LATEX: _latex,
    **{language: _keys(language) for language in _KEY},
}


_CELL = re.compile(r'\s{0,20}"cell_type": "(\w+)"')
_SOURCE = re.compile(r'\s{0,20}"source": \[\s*$')
_LANGUAGE = re.compile(r'\s{0,20}"language": "(\w{1,20})"')
_BLANK_LINES = re.compile(r"\n{3,}")


def parse_notebook(path: str, lines: Sequence[str]) -> ParsedFile | LeftOut:
    """Return chunks of cells without outputs; line numbers stay the file's."""
    cells = list(_written(lines))
    if not cells:
        return LeftOut(path, "no readable cell")
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
        return (
            msgspec.json.decode(line.strip().removesuffix(","), type=str)
            .rstrip("\n")
            .replace("\n", " ")
        )
    except msgspec.DecodeError:
        return line.strip()


def _definitions(lines: Sequence[str], code: Sequence[str]) -> list[Region]:
    from trivet.code.parse.parsers import has_grammar, regions_of

    named = (_LANGUAGE.match(line) for line in lines[-60:])
    language = next((one[1].lower() for one in named if one is not None), "python")
    return (regions_of(language, "\n".join(code).encode()) or []) if has_grammar(language) else []


def _dense(chunk: Chunk) -> Chunk:
    return msgspec.structs.replace(chunk, text=_BLANK_LINES.sub("\n\n", chunk.text).strip("\n"))
