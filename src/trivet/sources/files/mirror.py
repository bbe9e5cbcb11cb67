"""Memories as a folder of Markdown files, kept up to date: what `ingest` reads back is what was written.

A file that somebody has edited is left alone, and told, until it is ingested.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import msgspec

from trivet.errors import InvalidInput, StoreError
from trivet.memory.export_import import LinkLine, MemoryLine
from trivet.sources.files.front_matter import split_front_matter, text_of
from trivet.sources.files.mirror_format import is_as_written, is_mirror, says_the_same, written
from trivet.sources.files.walk import NOT_NOTES, look, read
from trivet.types import Link, Memory

LONGEST_NAME = 60
_NOT_IN_NAME = re.compile(r"[^\w]+")

Write = Callable[[Path, str], object]


class Mirrored(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to the folder; `left` are files that were edited there and not ingested yet."""

    folder: str
    written: int = 0
    unchanged: int = 0
    removed: int = 0
    left: tuple[str, ...] = ()


class There(msgspec.Struct, frozen=True):
    """A file of the folder that is a memory: where it is, what it says, whether it is as we wrote it."""

    path: str
    text: str
    as_written: bool


def mirror(lines: Iterable[str], folder: Path, write: Write) -> Mirrored:
    """`lines` are those of an export; `write` puts a text into a file, whole or not at all."""
    memories, links = _taken(lines)
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        root = folder.resolve(strict=True)
        return _brought_up(memories, links, root, write)
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error.strerror} ({error.filename}). Name another folder."
        ) from None


def _brought_up(memories: Sequence[Memory], links: dict[str, list[Link]], root: Path, write: Write) -> Mirrored:
    there, taken = _there(root)
    done = {"written": 0, "unchanged": 0, "removed": 0}
    left = []
    for memory in memories:
        text = written(memory, links[memory.id])
        old = there.pop(memory.id, None)
        if old is not None and old.text == text:
            done["unchanged"] += 1
            continue
        if old is not None and not old.as_written and not says_the_same(old.text, text):
            left.append(old.path)
            continue
        name = old.path if old is not None and _suits(old.path, memory) else _name(memory, taken)
        taken.add(name)
        (root / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write(root / name, text)
        done["written"] += 1
        if old is not None and old.path != name:
            (root / old.path).unlink()
    for old in there.values():
        if old.as_written:
            (root / old.path).unlink()
            done["removed"] += 1
        else:
            left.append(old.path)
    return Mirrored(folder=str(root), left=tuple(left), **done)


def _taken(lines: Iterable[str]) -> tuple[list[Memory], dict[str, list[Link]]]:
    memories: list[Memory] = []
    links: dict[str, list[Link]] = defaultdict(list)
    for row in lines:
        if row.startswith('{"memory"'):
            memory = msgspec.json.decode(row, type=MemoryLine).memory
            memories += [memory] if memory.state != "deleted" else []
        elif row.startswith('{"link"'):
            link = msgspec.json.decode(row, type=LinkLine).link
            links[link.source].append(link)
    return memories, links


def _there(root: Path) -> tuple[dict[str, There], set[str]]:
    """The memories in the folder by their ids, and every path that is taken, by whomever."""
    found: dict[str, There] = {}
    taken = set()
    for seen in look(root, ()).files:
        taken.add(seen.path)
        if not seen.path.endswith(".md"):
            continue
        try:
            text = read(root, seen.path).text
            front, _, _ = split_front_matter(text)
        except InvalidInput:  # not ours, then, and its path is taken
            continue
        if is_mirror(front):
            found[text_of(front["id"])] = There(seen.path, text, is_as_written(text))
    return found, taken


def _name(memory: Memory, taken: set[str]) -> str:
    for end in (memory.id[-8:], memory.id):
        name = f"{_folder(memory)}{_stem(memory)}-{end}.md"
        if name not in taken:
            return name
    raise StoreError(f"{name} is there already and is not ours. Move it away, or name another folder.")


def _suits(path: str, memory: Memory) -> bool:
    return path.startswith(f"{_folder(memory)}{_stem(memory)}-") and path.count("/") == _folder(memory).count("/")


def _stem(memory: Memory) -> str:
    words = _NOT_IN_NAME.sub("-", (memory.title or memory.content)[:LONGEST_NAME].lower()).strip("-_")
    return words.encode()[: LONGEST_NAME * 2].decode(errors="ignore") or "memory"


def _folder(memory: Memory) -> str:
    """The scope as folders; none of them hidden, and none that leads upward."""
    parts = (f"_{part}" if part.startswith(".") or part in NOT_NOTES else part for part in memory.scope.split("/"))
    return "".join(f"{part}/" for part in parts)
