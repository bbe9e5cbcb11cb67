"""The values of an ingest: the parts that a reader finds in a file, its options and its report.

Also the cutting of a text that is too long for one memory, at a paragraph, a line, a word or a character.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from trivet.secrets.masking import open_private_tags


class About(msgspec.Struct, frozen=True, omit_defaults=True):
    """The names by which links find a part, and what it links to: notes by name, files by path, memories by id."""

    order: int = 0
    note: str = ""
    aliases: tuple[str, ...] = ()
    heading: str = ""
    wiki: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    ids: tuple[tuple[str, str], ...] = ()


class Part(msgspec.Struct, frozen=True):
    """A future memory. `place` names it within its file; `fields` are what the file gives beside the content."""

    place: str
    content: str
    fields: Mapping[str, Any] = {}
    lines: tuple[int, int] | None = None
    about: About = About()


class Options(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a vault is ingested. The store keeps them for the next run."""

    scope: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class Skipped(msgspec.Struct, frozen=True):
    """A file or a folder (with a slash at its end) that was passed over on purpose. It is no problem."""

    path: str
    reason: str


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """What an ingest did, or with `dry_run` would do.

    A file in `problems` should have been read and was left out whole; what is in `skipped` is not read by the rules.
    """

    vault: str
    dry_run: bool = False
    files_read: int = 0
    files_unchanged: int = 0
    files_gone: int = 0
    stored: int = 0
    updated: int = 0
    moved: int = 0
    unchanged: int = 0
    forgotten: int = 0
    left_forgotten: int = 0
    links_added: int = 0
    links_removed: int = 0
    redacted: Mapping[str, int] = {}
    problems: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()

    @property
    def changed(self) -> bool:
        return bool(self.stored or self.updated or self.moved or self.forgotten)


# Below the most that a memory holds, since placeholders may be longer than the secrets they replace.
MAX_PART_BYTES = 24 * 1024
_SEAMS = (re.compile(r"\n[ \t]*\n"), re.compile(r"\n"), re.compile(r"\s"))


def pieces(text: str, most: int = MAX_PART_BYTES) -> Iterator[str]:
    """As `cuts`, with private marks repeated so that a private part is private in every piece."""
    depth = 0
    for piece in cuts(text, most):
        marked = "<private>" * depth + piece
        yield marked
        depth = open_private_tags(marked)


def cuts(text: str, most: int = MAX_PART_BYTES) -> Iterator[str]:
    """The text in pieces of at most so many bytes of UTF-8, without blank space around them; none is empty."""
    rest = text.strip()
    while len(rest.encode()) > most:
        window = rest.encode()[:most].decode(errors="ignore")
        stop = _seam(window)
        yield rest[:stop].rstrip()
        rest = rest[stop:].lstrip()
    if rest:
        yield rest


def _seam(window: str) -> int:
    """Never in the first half of the window: a cut within a paragraph is better than very short pieces."""
    for seam in _SEAMS:
        ends = [
            found.start() for found in seam.finditer(window) if found.start() > len(window) // 2
        ]
        if ends:
            return ends[-1]
    return len(window)
