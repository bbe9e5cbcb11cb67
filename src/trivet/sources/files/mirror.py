"""Memories as a folder of Markdown files, which `ingest` reads back exactly.

A file edited by the user stays as it is until it is ingested.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from trivet.common.files import private_folder
from trivet.common.threads import prepared_type
from trivet.errors import InvalidInput, StoreError
from trivet.memory.admin.export import Footer, LinkLine, MemoryLine
from trivet.sources.files.front_matter import (
    is_mirror,
    is_unmodified,
    same_memory,
    split_front_matter,
    text_of,
    written,
)
from trivet.sources.files.vault import NOT_NOTES, list_files, read_text
from trivet.types import Link, Memory

MAX_FILE_NAME = 60
_NOT_IN_NAME = re.compile(r"[^\w]+")

Write = Callable[[Path, str], object]


class Mirrored(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to the folder. `left` are edited files, not ingested yet."""

    folder: str
    written: int = 0
    unchanged: int = 0
    removed: int = 0
    left: tuple[str, ...] = ()


class MirrorFile(msgspec.Struct, frozen=True):
    path: str
    text: str
    as_written: bool


def mirror(lines: Iterable[str], folder: Path, write: Write) -> Mirrored:
    """Update the folder from the lines of an export; `write` must write a file atomically."""
    memories, links, whole = _decode(lines)
    try:
        private_folder(folder)
        root = folder.resolve(strict=True)
        return _update(memories, links, whole, root, write)
    except OSError as error:
        raise StoreError(
            f"Cannot write {folder}: {error.strerror} ({error.filename}). Choose another folder."
        ) from None


def _update(
    memories: Sequence[Memory], links: dict[str, list[Link]], whole: bool, root: Path, write: Write
) -> Mirrored:
    present, used_paths = _present(root)
    done = {"written": 0, "unchanged": 0, "removed": 0}
    left = []
    for memory in memories:
        text = written(memory, links[memory.id])
        old = present.pop(memory.id, None)
        if old is not None and old.text == text:
            done["unchanged"] += 1
            continue
        if old is not None and not old.as_written and not same_memory(old.text, text):
            left.append(old.path)
            continue
        name = (
            old.path if old is not None and _suits(old.path, memory) else _name(memory, used_paths)
        )
        used_paths.add(name)
        private_folder((root / name).parent)
        write(root / name, text)
        done["written"] += 1
        if old is not None and old.path != name:
            (root / old.path).unlink()
    for old in present.values() if whole else ():
        if old.as_written:
            (root / old.path).unlink()
            done["removed"] += 1
        else:
            left.append(old.path)
    return Mirrored(folder=str(root), left=tuple(left), **done)


def _decode(lines: Iterable[str]) -> tuple[list[Memory], dict[str, list[Link]], bool]:
    """Return memories, links, and whether all could be read: others must keep their file."""
    whole = True
    memories: list[Memory] = []
    links: dict[str, list[Link]] = defaultdict(list)
    for row in lines:
        if row.startswith('{"memory"'):
            memory = msgspec.json.decode(row, type=prepared_type(MemoryLine)).memory
            memories += [memory] if memory.state != "deleted" else []
        elif row.startswith('{"link"'):
            link = msgspec.json.decode(row, type=prepared_type(LinkLine)).link
            links[link.source].append(link)
        elif row.startswith('{"trivet_export_end"'):
            whole = not msgspec.json.decode(row, type=prepared_type(Footer)).unreadable
    return memories, links, whole


def _present(root: Path) -> tuple[dict[str, MirrorFile], set[str]]:
    found: dict[str, MirrorFile] = {}
    used_paths = set()
    for file in list_files(root, ()).files:
        used_paths.add(file.path)
        if not file.path.endswith(".md"):
            continue
        try:
            text = read_text(root, file.path).text
            front, _, _ = split_front_matter(text)
        except InvalidInput:  # not a mirror file; its path is still taken
            continue
        if is_mirror(front):
            found[text_of(front["id"])] = MirrorFile(file.path, text, is_unmodified(text))
    return found, used_paths


def _name(memory: Memory, used_paths: set[str]) -> str:
    for end in (memory.id[-8:], memory.id):
        name = f"{_folder(memory)}{_stem(memory)}-{end}.md"
        if name not in used_paths:
            return name
    raise StoreError(
        f"{name} already exists and was not written by Trivet. Move it, or choose another folder."
    )


def _suits(path: str, memory: Memory) -> bool:
    return path.startswith(f"{_folder(memory)}{_stem(memory)}-") and path.count("/") == _folder(
        memory
    ).count("/")


def _stem(memory: Memory) -> str:
    words = _NOT_IN_NAME.sub("-", (memory.title or memory.content)[:MAX_FILE_NAME].lower()).strip(
        "-_"
    )
    return words.encode()[: MAX_FILE_NAME * 2].decode(errors="ignore") or "memory"


def _folder(memory: Memory) -> str:
    parts = (
        f"_{part}" if part.startswith(".") or part in NOT_NOTES else part
        for part in memory.scope.split("/")
    )
    return "".join(f"{part}/" for part in parts)
