"""Snapshots: segments as mapped files, so that new processes search at once and share memory."""

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
    with atomic_write(file) as stream:
        write_arrays(stream, KIND, dict(_arrays("", segment)))


def load_snapshot(file: Path) -> Segment | None:
    mapped = map_arrays(file, KIND)
    if mapped is None:
        return None
    try:
        segment: Segment = _built(Segment, "", mapped.arrays)
    except KeyError as error:
        logger.warning("Cannot use the snapshot %s (%r). Rebuilding it.", file, error)
        return None
    return segment


def _arrays(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
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


# Larger changes make a new snapshot; smaller ones are searched as a segment next to it.
MAX_CHANGED_SHARE = 0.2
# Smaller trees need no snapshot.
MIN_SNAPSHOT_FILES = 50

UNREADABLE = "cannot be read"


def view_of_tree(
    index: IndexFile, root: Root, files: Sequence[KeyedFile]
) -> tuple[View, tuple[LeftOut, ...]]:
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
        segment = load_snapshot(file) or segment  # mapped pages are shared and can be evicted
    return _joined(segment, np.ones(len(segment.path), bool), None), left_out


def _joined(base: Segment, files_alive: np.ndarray, more: Segment | None) -> View:
    alive = files_alive[base.file]
    if more is None or not len(more.path):
        return View((base,), alive)
    return View((base, more), np.concatenate([alive, np.ones(more.chunks, bool)]))


def _facts(
    index: IndexFile, files: Sequence[KeyedFile]
) -> tuple[list[tuple[str, str, FileFacts]], tuple[LeftOut, ...]]:
    facts = index.facts([one.key for one in files])
    found = [(one, facts.get(one.key, UNREADABLE)) for one in files]
    kept = [
        (one.key.hex(), one.file.path, fact) for one, fact in found if isinstance(fact, FileFacts)
    ]
    return kept, tuple(LeftOut(one.file.path, fact) for one, fact in found if isinstance(fact, str))


def _snapshot_file(index: IndexFile, root: Root) -> Path:
    """Name a file per worktree: worktrees share facts but hold different files."""
    name = blake2b(str(root.folder).encode(errors="replace"), digest_size=6).hexdigest()
    return index.file.with_suffix(f".{name}.snapshot")
