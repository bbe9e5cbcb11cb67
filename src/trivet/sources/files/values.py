"""What travels through an ingest: the parts a reader finds in a file, and what became of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec


class About(msgspec.Struct, frozen=True, omit_defaults=True):
    """What others may call a part, and what it points at: a note by name, a file by path, or a memory by id."""

    order: int = 0
    note: str = ""
    aliases: tuple[str, ...] = ()
    heading: str = ""
    wiki: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    ids: tuple[tuple[str, str], ...] = ()


class Part(msgspec.Struct, frozen=True):
    """One memory to be. `place` names it within its file; `fields` are what the file says beside the content."""

    place: str
    content: str
    fields: Mapping[str, Any] = {}
    lines: tuple[int, int] | None = None
    about: About = About()


class Options(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a vault is ingested. The store remembers them, so that the next run need not be told again."""

    scope: str = ""
    category: str = ""
    tags: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


class Ingested(msgspec.Struct, frozen=True, kw_only=True):
    """What an ingest did, or with `dry_run` would do. A file in `problems` was left out whole."""

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

    @property
    def changed(self) -> bool:
        return bool(self.stored or self.updated or self.moved or self.forgotten)
