"""The view of a tree: the mapped snapshot of an earlier look, and a small segment of what changed since."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from trivet.code.index.database import IndexFile
from trivet.code.index.facts import FileFacts
from trivet.code.index.segment import Segment, segment_of
from trivet.code.index.snapshot import load, save
from trivet.code.search.view import View
from trivet.code.tree import Root
from trivet.code.types import Keyed, LeftOut

# A segment of changes up to this share of the tree is searched beside the snapshot; a larger one makes a new snapshot.
MOST_CHANGED = 0.2
# The snapshot of a tree of a few files is not worth a file of its own.
FEW_FILES = 50

UNREADABLE = "cannot be read"


def view_of_tree(index: IndexFile, root: Root, files: Sequence[Keyed]) -> tuple[View, tuple[LeftOut, ...]]:
    """What can be searched, and the files of the listing that cannot."""
    file = _snapshot_file(index, root)
    base = load(file) if len(files) > FEW_FILES else None
    if base is not None:
        wanted = {one.key.hex() for one in files}
        known = [base.key.at(number) for number in range(len(base.key))]
        kept = set(known)
        changed, left_out = _facts(index, [one for one in files if one.key.hex() not in kept])
        if len(changed) <= MOST_CHANGED * len(files):
            alive = np.fromiter((key in wanted for key in known), bool, len(known))
            return _joined(base, alive, segment_of(changed)), left_out
    found, left_out = _facts(index, files)
    segment = segment_of(found)
    if len(files) > FEW_FILES:
        save(file, segment)
        segment = load(file) or segment  # mapped: its pages are shared with other processes, and can be let go
    return _joined(segment, np.ones(len(segment.path), bool), None), left_out


def _joined(base: Segment, files_alive: np.ndarray, more: Segment | None) -> View:
    alive = files_alive[base.file]
    if more is None or not len(more.path):
        return View((base,), alive)
    return View((base, more), np.concatenate([alive, np.ones(more.chunks, bool)]))


def _facts(index: IndexFile, files: Sequence[Keyed]) -> tuple[list[tuple[str, str, FileFacts]], tuple[LeftOut, ...]]:
    """The facts of files as a segment takes them, and the files without any, with the reason."""
    facts = index.facts([one.key for one in files])
    found = [(one, facts.get(one.key, UNREADABLE)) for one in files]
    kept = [(one.key.hex(), one.file.path, fact) for one, fact in found if isinstance(fact, FileFacts)]
    return kept, tuple(LeftOut(one.file.path, fact) for one, fact in found if isinstance(fact, str))


def _snapshot_file(index: IndexFile, root: Root) -> Path:
    """One for each worktree: they share facts, but hold different files."""
    name = blake2b(str(root.folder).encode(errors="replace"), digest_size=6).hexdigest()
    return index.file.with_suffix(f".{name}.snapshot")
