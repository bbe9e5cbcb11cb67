"""Markdown notes, a part per heading, and agents' files, a part per list item."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

import msgspec
from markdown_it import MarkdownIt
from markdown_it.token import Token

from trivet.errors import InvalidInput
from trivet.secrets.masking import open_private_tags, private_spans, remove_private_parts
from trivet.sources.files.front_matter import (
    is_mirror,
    parse_mirror,
    split_front_matter,
    text_of,
    words,
)
from trivet.sources.files.parts import About, Part, pieces

LONGEST_TITLE = 300
LONGEST_TAG = 64
MAX_TAGS = 50
_TAG = re.compile(r"(?<!\S)#(?=[\w/-]*[^\W\d])([\w/-]+)")
_WIKI = re.compile(r"!?\[\[([^\[\]|\n]+)(?:\|[^\[\]\n]*)?\]\]")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")
_DATES = ("created", "created_at", "date")


class Section(msgspec.Struct, frozen=True):
    """The lines under one heading; the first section may have none."""

    path: tuple[str, ...]
    start: int
    body: int
    stop: int


class Note(msgspec.Struct, frozen=True):
    """A parsed note. Lines count from 0 in `rows`, which follow `offset` lines of front matter.

    `starts` are the lines of `inline`, for binary search.
    """

    title: str
    front: Mapping[str, Any]
    rows: Sequence[str]
    offset: int
    tokens: Sequence[Token]
    inline: Sequence[Token]
    starts: Sequence[int]
    sections: Sequence[Section]


def read_markdown(name: str, text: str) -> Iterator[Part]:
    front, body, offset = split_front_matter(text)
    if is_mirror(front):
        yield parse_mirror(front, body)
        return
    note = parse_note(name, front, body, offset)
    depth = 0
    for section in note.sections:
        above = open_private_tags("<private>" * depth + _text(note, section.start, section.body))
        marked = "<private>" * above + _text(note, section.body, section.stop)
        parts = parts_of(note, section, marked, "", (section.start, section.stop))
        yield from (_without_heading(part) for part in parts) if depth else parts
        depth = open_private_tags(marked)


def _without_heading(part: Part) -> Part:
    """Drop the heading, tags and links of a section that begins in a private span."""
    fields = {**part.fields, "title": part.about.note[:LONGEST_TITLE], "tags": ()}
    return Part("private", part.content, fields, part.lines, About(note=part.about.note))


def parse_note(name: str, front: Mapping[str, Any], body: str, offset: int) -> Note:
    tokens = _parser().parse(body)
    rows = body.splitlines()
    headings = list(_headings(tokens))
    opening = (
        headings[0]
        if headings and headings[0][0] == 1 and not "".join(rows[: headings[0][2]]).strip()
        else None
    )
    title = (
        text_of(front.get("title"))
        or (opening[1] if opening else "")
        or name.rpartition("/")[2].rpartition(".")[0]
    )
    inline = sorted(_in_lines(tokens), key=_start)
    starts = [_start(token) for token in inline]
    sections = list(_sections(headings, len(rows), opening is not None))
    return Note(title, front, rows, offset, tokens, inline, starts, sections)


def parts_of(
    note: Note, section: Section, text: str, mark: str, lines: tuple[int, int]
) -> Iterator[Part]:
    """Yield a text as one or more parts; `mark` makes its place unique in the section."""
    inline = note.inline[bisect_left(note.starts, lines[0]) : bisect_left(note.starts, lines[1])]
    if private_spans(text):  # then tags and links come only from the rest
        inline = _in_lines(_parser().parse(remove_private_parts(text)))
    about = _about(note, section, inline)
    fields = _fields(note, section, inline)
    for number, piece in enumerate(pieces(text), 1):
        place = " > ".join(section.path) + mark + (f" ~{number}" if number > 1 else "")
        first, last = lines[0] + note.offset + 1, lines[1] + note.offset
        yield Part(place, piece, fields, (first, max(first, last)), about)


def _headings(tokens: Sequence[Token]) -> Iterator[tuple[int, str, int, int]]:
    for token, inner in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            yield int(token.tag[1]), _plain(inner), token.map[0], token.map[1]


def _sections(
    headings: Sequence[tuple[int, str, int, int]], count: int, titled: bool
) -> Iterator[Section]:
    """Yield the sections. With `titled`, the first heading is the note's title."""
    stops = [start for _, _, start, _ in headings[1:]] + [count]
    if not headings:
        yield Section((), 0, 0, count)
        return
    if headings[0][2] > 0:
        yield Section((), 0, 0, headings[0][2])
    above: list[tuple[int, str]] = []
    for number, ((level, text, start, body), stop) in enumerate(zip(headings, stops, strict=True)):
        if number == 0 and titled:
            yield Section((), start, body, stop)
            continue
        above = [*((outer, name) for outer, name in above if outer < level), (level, text)]
        yield Section(tuple(name for _, name in above), start, body, stop)


def _fields(note: Note, section: Section, inline: Sequence[Token]) -> dict[str, Any]:
    front = note.front
    fields: dict[str, Any] = {
        "title": ": ".join(part for part in (note.title, " > ".join(section.path)) if part)[
            :LONGEST_TITLE
        ],
        "tags": _tags(front, inline),
    }
    date = next((text_of(front[name]) for name in _DATES if name in front), "")
    for name, value in (("created_at", date), ("category", text_of(front.get("category")))):
        if value:
            fields[name] = value
    if aliases := words(front.get("aliases", front.get("alias"))):
        fields["expanded_keywords"] = tuple(alias[:LONGEST_TAG] for alias in aliases[:MAX_TAGS])
    for name in ("importance", "sensitive"):
        if value := text_of(front.get(name)):
            fields[name] = value
    return fields


def _tags(front: Mapping[str, Any], inline: Sequence[Token]) -> tuple[str, ...]:
    listed = [word for tag in words(front.get("tags", front.get("tag"))) for word in _listed(tag)]
    found = [tag for token in inline for text in _texts(token) for tag in _TAG.findall(text)]
    kept = (tag.strip("/#")[:LONGEST_TAG] for tag in (*listed, *found))
    return tuple(dict.fromkeys(tag for tag in kept if tag))[:MAX_TAGS]


def _listed(tag: str) -> list[str]:
    """Split `tags: #one #two` into two tags; without #, spaces belong to the tag."""
    return tag.split() if tag.startswith("#") else [tag]


def _about(note: Note, section: Section, inline: Sequence[Token]) -> About:
    wiki = [
        target.strip()
        for token in inline
        for text in _texts(token)
        for target in _WIKI.findall(text)
    ]
    files = [
        unquote(target) for token in inline for target in _hrefs(token) if not _SCHEME.match(target)
    ]
    return About(
        note=note.title,
        aliases=words(note.front.get("aliases", note.front.get("alias"))),
        heading=slug(remove_private_parts(section.path[-1])) if section.path else "",
        wiki=tuple(dict.fromkeys(wiki)),
        files=tuple(dict.fromkeys(files)),
    )


def slug(heading: str) -> str:
    return _NOT_IN_SLUG.sub("", heading.strip().lower()).replace(" ", "-")


def _texts(token: Token) -> Iterator[str]:
    return (child.content for child in token.children or () if child.type == "text")


def _hrefs(token: Token) -> Iterator[str]:
    return (
        str(child.attrs.get("href", ""))
        for child in token.children or ()
        if child.type == "link_open"
    )


def _plain(token: Token) -> str:
    """Return a heading without markup. Private tags stay until their content is removed."""
    return "".join(child.content for child in token.children or () if _is_text(child)).strip()


def _is_text(child: Token) -> bool:
    return child.type in ("text", "code_inline") or (
        child.type == "html_inline" and "private" in child.content.lower()
    )


def _in_lines(tokens: Sequence[Token]) -> list[Token]:
    return [token for token in tokens if token.map and token.type == "inline"]


def _start(token: Token) -> int:
    return token.map[0] if token.map else 0


def _text(note: Note, start: int, stop: int) -> str:
    return "\n".join(note.rows[start:stop])


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark")


# Instructions and notes of agents: each list item is a fact.
AGENT_FILES = ("memory.md", "claude.md", "claude.local.md", "agents.md", "gemini.md")
_BULLET = re.compile(r"^\s*(?:[-*+]|\d{1,9}[.)])\s+")


def read_agent_file(name: str, text: str) -> Iterator[Part]:
    """Yield a part per list item and one per section's prose."""
    front, body, offset = split_front_matter(text)
    if any("\n" in body[start:stop] for start, stop in private_spans(body)):
        raise InvalidInput(
            "a private part spans several lines, which become separate memories. Mark each line"
        )
    note = parse_note(name, front, body, offset)
    for section in note.sections:
        points = list(_points(note, section))
        prose = "\n".join(
            row
            for number, row in enumerate(note.rows[section.body : section.stop], section.body)
            if not any(start <= number < stop for start, stop in points)
        )
        if prose.strip():
            yield from parts_of(note, section, prose, "", (section.start, section.stop))
        for number, (start, stop) in enumerate(points, 1):
            text = "\n".join(
                [_BULLET.sub("", note.rows[start], count=1), *note.rows[start + 1 : stop]]
            )
            yield from parts_of(note, section, text, f" • {number}", (start, stop))


def _points(note: Note, section: Section) -> Iterator[tuple[int, int]]:
    for token in note.tokens:
        if token.type == "list_item_open" and token.level == 1 and token.map:
            start, stop = token.map
            if section.body <= start < section.stop:
                yield start, min(stop, section.stop)
