"""What an agent is told or has noted for itself (CLAUDE.md, MEMORY.md, ...): each point of a list is a fact."""

from __future__ import annotations

import re
from collections.abc import Iterator

from trivet.errors import InvalidInput
from trivet.secrets.private import private_spans
from trivet.sources.files.front_matter import split_front_matter
from trivet.sources.files.readers.markdown import Note, Section, parts_of, take_apart
from trivet.sources.files.values import Part

NAMES = ("memory.md", "claude.md", "claude.local.md", "agents.md", "gemini.md")
_BULLET = re.compile(r"\s*(?:[-*+]|\d{1,9}[.)])\s+")


def read_agent_file(name: str, text: str) -> Iterator[Part]:
    front, body, offset = split_front_matter(text)
    if any("\n" in body[start:stop] for start, stop in private_spans(body)):
        raise InvalidInput("a private part goes over several lines, which are memories of their own. Mark each of them")
    note = take_apart(name, front, body, offset)
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
            text = "\n".join([_BULLET.sub("", note.rows[start], count=1), *note.rows[start + 1 : stop]])
            yield from parts_of(note, section, text, f" • {number}", (start, stop))


def _points(note: Note, section: Section) -> Iterator[tuple[int, int]]:
    for token in note.tokens:
        if token.type == "list_item_open" and token.level == 1 and token.map:
            start, stop = token.map
            if section.body <= start < section.stop:
                yield start, min(stop, section.stop)
