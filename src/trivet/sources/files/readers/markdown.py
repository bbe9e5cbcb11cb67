"""A note: its front matter, and a part for each heading."""

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

from trivet.secrets.private import open_marks, private_spans, without_private
from trivet.sources.files.cut import pieces
from trivet.sources.files.front_matter import split_front_matter, text_of, words
from trivet.sources.files.mirror_format import is_mirror, mirrored
from trivet.sources.files.values import About, Part

LONGEST_TITLE = 300
LONGEST_TAG = 64
MOST_TAGS = 50
_TAG = re.compile(r"(?<!\S)#(?=[\w/-]*[^\W\d])([\w/-]+)")
_WIKI = re.compile(r"!?\[\[([^\[\]|\n]+)(?:\|[^\[\]\n]*)?\]\]")
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|//|#", re.IGNORECASE)
_NOT_IN_SLUG = re.compile(r"[^\w\- ]")
_DATES = ("created", "created_at", "date")


class Section(msgspec.Struct, frozen=True):
    """The lines under one heading, up to the next. The first of a note may have no heading."""

    path: tuple[str, ...]
    start: int
    body: int
    stop: int


class Note(msgspec.Struct, frozen=True):
    """A note taken apart. Lines count from 0 in `rows`, which come after `offset` lines of front matter.

    `starts` are the lines of `inline`, in order: a note may have many thousands of sections.
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
        yield mirrored(front, body)
        return
    note = take_apart(name, front, body, offset)
    depth = 0
    for section in note.sections:
        above = open_marks("<private>" * depth + _text(note, section.start, section.body))
        marked = "<private>" * above + _text(note, section.body, section.stop)
        parts = parts_of(note, section, marked, "", (section.start, section.stop))
        yield from (_without_heading(part) for part in parts) if depth else parts
        depth = open_marks(marked)


def _without_heading(part: Part) -> Part:
    """A section that begins within a private span: its heading, tags and links are private as well."""
    fields = {**part.fields, "title": part.about.note[:LONGEST_TITLE], "tags": ()}
    return Part("private", part.content, fields, part.lines, About(note=part.about.note))


def take_apart(name: str, front: Mapping[str, Any], body: str, offset: int) -> Note:
    tokens = _parser().parse(body)
    rows = body.splitlines()
    headings = list(_headings(tokens))
    opening = headings[0] if headings and headings[0][0] == 1 and not "".join(rows[: headings[0][2]]).strip() else None
    title = text_of(front.get("title")) or (opening[1] if opening else "") or name.rpartition("/")[2].rpartition(".")[0]
    inline = sorted(_in_lines(tokens), key=_start)
    starts = [_start(token) for token in inline]
    sections = list(_sections(headings, len(rows), opening is not None))
    return Note(title, front, rows, offset, tokens, inline, starts, sections)


def parts_of(note: Note, section: Section, text: str, mark: str, lines: tuple[int, int]) -> Iterator[Part]:
    """A text of a section as one part, or more if it is long. `mark` tells it from others of the same section."""
    inline = note.inline[bisect_left(note.starts, lines[0]) : bisect_left(note.starts, lines[1])]
    if private_spans(text):  # tags and links are looked for in what is left of the section without them
        inline = _in_lines(_parser().parse(without_private(text)))
    about = _about(note, section, inline)
    fields = _fields(note, section, inline)
    for number, piece in enumerate(pieces(text), 1):
        place = " > ".join(section.path) + mark + (f" ~{number}" if number > 1 else "")
        first, last = lines[0] + note.offset + 1, lines[1] + note.offset
        yield Part(place, piece, fields, (first, max(first, last)), about)


def _headings(tokens: Sequence[Token]) -> Iterator[tuple[int, str, int, int]]:
    """Level, text, first line and line after; only those that stand by themselves, not in a list or a quotation."""
    for token, inner in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            yield int(token.tag[1]), _plain(inner), token.map[0], token.map[1]


def _sections(headings: Sequence[tuple[int, str, int, int]], count: int, titled: bool) -> Iterator[Section]:
    """A first heading of level one is the note's title, and belongs to no path."""
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
        "title": ": ".join(part for part in (note.title, " > ".join(section.path)) if part)[:LONGEST_TITLE],
        "tags": _tags(front, inline),
    }
    date = next((text_of(front[name]) for name in _DATES if name in front), "")
    for name, value in (("created_at", date), ("category", text_of(front.get("category")))):
        if value:
            fields[name] = value
    if aliases := words(front.get("aliases", front.get("alias"))):
        fields["expanded_keywords"] = tuple(alias[:LONGEST_TAG] for alias in aliases[:MOST_TAGS])
    for name in ("importance", "sensitive"):
        if value := text_of(front.get(name)):
            fields[name] = value
    return fields


def _tags(front: Mapping[str, Any], inline: Sequence[Token]) -> tuple[str, ...]:
    listed = [word for tag in words(front.get("tags", front.get("tag"))) for word in _listed(tag)]
    found = [tag for token in inline for text in _texts(token) for tag in _TAG.findall(text)]
    kept = (tag.strip("/#")[:LONGEST_TAG] for tag in (*listed, *found))
    return tuple(dict.fromkeys(tag for tag in kept if tag))[:MOST_TAGS]


def _listed(tag: str) -> list[str]:
    """`tags: #one #two` is two tags; without the marks a blank belongs to the tag."""
    return tag.split() if tag.startswith("#") else [tag]


def _about(note: Note, section: Section, inline: Sequence[Token]) -> About:
    wiki = [target.strip() for token in inline for text in _texts(token) for target in _WIKI.findall(text)]
    files = [unquote(target) for token in inline for target in _hrefs(token) if not _SCHEME.match(target)]
    return About(
        note=note.title,
        aliases=words(note.front.get("aliases", note.front.get("alias"))),
        heading=slug(without_private(section.path[-1])) if section.path else "",
        wiki=tuple(dict.fromkeys(wiki)),
        files=tuple(dict.fromkeys(files)),
    )


def slug(heading: str) -> str:
    """A heading as the anchors of links write it."""
    return _NOT_IN_SLUG.sub("", heading.strip().lower()).replace(" ", "-")


def _texts(token: Token) -> Iterator[str]:
    """Prose alone: what stands in code is no tag and no link."""
    return (child.content for child in token.children or () if child.type == "text")


def _hrefs(token: Token) -> Iterator[str]:
    return (str(child.attrs.get("href", "")) for child in token.children or () if child.type == "link_open")


def _plain(token: Token) -> str:
    """Without marks, other than those of private parts, which are taken out later with what they enclose."""
    return "".join(child.content for child in token.children or () if _is_said(child)).strip()


def _is_said(child: Token) -> bool:
    return child.type in ("text", "code_inline") or (child.type == "html_inline" and "private" in child.content.lower())


def _in_lines(tokens: Sequence[Token]) -> list[Token]:
    return [token for token in tokens if token.map and token.type == "inline"]


def _start(token: Token) -> int:
    return token.map[0] if token.map else 0


def _text(note: Note, start: int, stop: int) -> str:
    return "\n".join(note.rows[start:stop])


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark")
