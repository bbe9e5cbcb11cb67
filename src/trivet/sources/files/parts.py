"""Data types of an ingest, and the splitting of long texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from trivet.secrets.masking import open_private_tags


class About(msgspec.Struct, frozen=True, omit_defaults=True):
    """Names by which links find a part, and its own links by name, path or id."""

    order: int = 0
    note: str = ""
    aliases: tuple[str, ...] = ()
    heading: str = ""
    wiki: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    ids: tuple[tuple[str, str], ...] = ()


class Part(msgspec.Struct, frozen=True):
    """A future memory. `place` identifies it within its file."""

    place: str
    content: str
    fields: Mapping[str, Any] = {}
    lines: tuple[int, int] | None = None
    about: About = About()


class Options(msgspec.Struct, frozen=True, omit_defaults=True):
    scope: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class Skipped(msgspec.Struct, frozen=True):
    """A file, or a folder with a final slash, that was skipped on purpose."""

    path: str
    reason: str


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """What an ingest did, or would do with `dry_run`.

    `problems` lists files that should have been read; `skipped` those excluded by rules.
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


# Below the limit of a memory, as placeholders may be longer than secrets.
MAX_PART_BYTES = 24 * 1024
_SEAMS = (re.compile(r"\n[ \t]*\n"), re.compile(r"\n"), re.compile(r"\s"))


def pieces(text: str, most: int = MAX_PART_BYTES) -> Iterator[str]:
    """Yield the pieces of `cuts`, repeating private tags in every piece they span."""
    depth = 0
    for piece in cuts(text, most):
        marked = "<private>" * depth + piece
        yield marked
        depth = open_private_tags(marked)


def cuts(text: str, most: int = MAX_PART_BYTES) -> Iterator[str]:
    """Yield stripped pieces of at most `most` bytes of UTF-8."""
    rest = text.strip()
    while len(rest.encode()) > most:
        window = rest.encode()[:most].decode(errors="ignore")
        stop = _seam(window)
        yield rest[:stop].rstrip()
        rest = rest[stop:].lstrip()
    if rest:
        yield rest


def _seam(window: str) -> int:
    """Return a cut in the second half, because very short pieces are worse."""
    for seam in _SEAMS:
        ends = [
            found.start() for found in seam.finditer(window) if found.start() > len(window) // 2
        ]
        if ends:
            return ends[-1]
    return len(window)
