"""A segment as one flat file, mapped instead of read: a new process searches at once, and processes share it.

A file that is cut short or of another version is made anew.

The view of a tree: the mapped snapshot of an earlier look, and a small segment of what changed since.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

import numpy as np

from trivet.code.index.database import IndexFile
from trivet.code.index.facts import FileFacts
from trivet.code.index.segment import Segment, segment_of
from trivet.code.search.view import View
from trivet.code.tree import Root
from trivet.code.types import KeyedFile, LeftOut
from trivet.common.files import atomic_write
from trivet.common.mapped_arrays import map_arrays, write_arrays

logger = logging.getLogger("trivet.code")

KIND = b"TRIVETC2"


def save_snapshot(file: Path, segment: Segment) -> None:
    """Written beside and renamed, so that readers have the old one or the whole new one."""
    with atomic_write(file) as stream:
        write_arrays(stream, KIND, dict(_arrays("", segment)))


def load_snapshot(file: Path) -> Segment | None:
    """The mapped segment, or None where there is none that can be used."""
    mapped = map_arrays(file, KIND)
    if mapped is None:
        return None
    try:
        segment: Segment = _built(Segment, "", mapped.arrays)
    except KeyError as error:
        logger.warning("The snapshot %s cannot be used (%r): it is made anew.", file, error)
        return None
    return segment


def _arrays(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The arrays of nested named tuples, each by the path of its field."""
    for name in value._fields:
        part = getattr(value, name)
        if isinstance(part, np.ndarray):
            yield f"{prefix}{name}", part
        else:
            yield from _arrays(f"{prefix}{name}.", part)


def _built(kind: type[NamedTuple], prefix: str, parts: dict[str, Any]) -> Any:
    hints = get_type_hints(kind)
    values = [
        _built(hints[name], f"{prefix}{name}.", parts)
        if hasattr(hints[name], "_fields")
        else parts[prefix + name]
        for name in kind._fields
    ]
    return kind(*values)


# A segment of changes up to this share of the tree is searched beside the snapshot; a larger one makes a new snapshot.
MAX_CHANGED_SHARE = 0.2
# The snapshot of a tree of a few files is not worth a file of its own.
MIN_SNAPSHOT_FILES = 50

UNREADABLE = "cannot be read"


def view_of_tree(
    index: IndexFile, root: Root, files: Sequence[KeyedFile]
) -> tuple[View, tuple[LeftOut, ...]]:
    """What can be searched, and the files of the listing that cannot."""
    file = _snapshot_file(index, root)
    base = load_snapshot(file) if len(files) > MIN_SNAPSHOT_FILES else None
    if base is not None:
        wanted = {one.key.hex() for one in files}
        known = [base.key.at(number) for number in range(len(base.key))]
        kept = set(known)
        changed, left_out = _facts(index, [one for one in files if one.key.hex() not in kept])
        if len(changed) <= MAX_CHANGED_SHARE * len(files):
            alive = np.fromiter((key in wanted for key in known), bool, len(known))
            return _joined(base, alive, segment_of(changed)), left_out
    found, left_out = _facts(index, files)
    segment = segment_of(found)
    if len(files) > MIN_SNAPSHOT_FILES:
        save_snapshot(file, segment)
        segment = (
            load_snapshot(file) or segment
        )  # mapped: its pages are shared with other processes, and can be let go
    return _joined(segment, np.ones(len(segment.path), bool), None), left_out


def _joined(base: Segment, files_alive: np.ndarray, more: Segment | None) -> View:
    alive = files_alive[base.file]
    if more is None or not len(more.path):
        return View((base,), alive)
    return View((base, more), np.concatenate([alive, np.ones(more.chunks, bool)]))


def _facts(
    index: IndexFile, files: Sequence[KeyedFile]
) -> tuple[list[tuple[str, str, FileFacts]], tuple[LeftOut, ...]]:
    """The facts of files as a segment takes them, and the files without any, with the reason."""
    facts = index.facts([one.key for one in files])
    found = [(one, facts.get(one.key, UNREADABLE)) for one in files]
    kept = [
        (one.key.hex(), one.file.path, fact) for one, fact in found if isinstance(fact, FileFacts)
    ]
    return kept, tuple(LeftOut(one.file.path, fact) for one, fact in found if isinstance(fact, str))


def _snapshot_file(index: IndexFile, root: Root) -> Path:
    """One for each worktree: they share facts, but hold different files."""
    name = blake2b(str(root.folder).encode(errors="replace"), digest_size=6).hexdigest()
    return index.file.with_suffix(f".{name}.snapshot")
