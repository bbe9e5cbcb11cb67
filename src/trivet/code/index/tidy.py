"""Keeps the index file from growing with every edit: facts that no tree holds any more are deleted in time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trivet.code.index.database import IndexFile

# Facts of other branches are kept, so that a switch back costs nothing, while they are fewer than this share of all.
MOST_UNUSED = 4.0
AT_LEAST = 2_000


def tidy(index: IndexFile, keys: Iterable[bytes]) -> int:
    """Deletes what this tree does not hold, once most of the file is such; returns how many files' facts went.

    Other worktrees then parse theirs again, if theirs were among them.
    """
    used = set(keys)
    if index.count() <= max(AT_LEAST, MOST_UNUSED * len(used)):
        return 0
    with index.writing():
        for root, _, _ in index.trees():
            if not Path(root).is_dir():
                index.forget_tree(root)
        return index.keep_only(used)
