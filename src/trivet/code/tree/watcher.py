"""Watches a root: which paths to look at again after each burst of changes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePath
from threading import Event
from typing import TYPE_CHECKING

from trivet.code.tree.exclusions import GITIGNORE, THIRD_PARTY_FOLDERS, TRIVET_IGNORE, file_reason
from trivet.code.tree.git import GitRefused, git_list
from trivet.code.tree.root import Root

if TYPE_CHECKING:
    from watchfiles import Change

# A saved file must be found within a tenth of a second; editors save in several steps that take a few milliseconds.
QUIET_MILLISECONDS = 20
# A checkout changes thousands of files: they come in few bursts.
MAX_DELAY_MILLISECONDS = 1_000
# How often the wait is interrupted to see whether it should stop.
POLL_MILLISECONDS = 250
# With more paths than this, or a changed ignore file, the whole root is looked at.
MAX_CHANGED_PATHS = 200
EVERYTHING = frozenset(("",))


def watch(root: Root, stop: Event | None = None) -> Iterator[frozenset[str]]:
    """First EVERYTHING, once the watch has begun, for what changed before; then the paths of each burst of changes.

    The paths are from the root, as `list_tree` takes them for `only`. One may be a file, also one that is gone or that
    git ignores, or a folder, of which everything below may be another.
    """
    import watchfiles  # here, because a search that watches nothing should not wait for it

    begun = False
    for found in watchfiles.watch(
        root.folder,
        watch_filter=lambda _, path: _concerns(root.folder, path),
        debounce=MAX_DELAY_MILLISECONDS,
        step=QUIET_MILLISECONDS,
        rust_timeout=POLL_MILLISECONDS,
        yield_on_timeout=True,
        stop_event=stop,
        raise_interrupt=False,
    ):
        if not begun:
            begun = True
            yield EVERYTHING
        elif found and (paths := _not_ignored(root, _paths(root.folder, found))):
            yield paths


def _concerns(folder: Path, path: str) -> bool:
    """Whether a change may be one of the tree. Without a look at the disk: builds change files by the thousand."""
    *above, name = PurePath(path).relative_to(folder).parts or ("",)
    return (
        not any(part == ".git" or part in THIRD_PARTY_FOLDERS for part in (*above, name)) and file_reason(name) is None
    )


def _paths(folder: Path, found: set[tuple[Change, str]]) -> frozenset[str]:
    paths = frozenset(PurePath(path).relative_to(folder).as_posix() for _, path in found)
    return EVERYTHING if any(PurePath(path).name in (GITIGNORE, TRIVET_IGNORE) for path in paths) else paths


def _not_ignored(root: Root, paths: frozenset[str]) -> frozenset[str]:
    """Without what git ignores: a build may write such files for minutes. The whole root if there are too many."""
    if root.git and paths != EVERYTHING:
        # By the patterns alone first, because to read the index of a large repository takes as long as all the rest:
        # only what they ignore may be tracked nevertheless.
        paths -= _ignored(root, _ignored(root, paths, "--no-index"))
    return paths if len(paths) <= MAX_CHANGED_PATHS else EVERYTHING


def _ignored(root: Root, paths: frozenset[str], *options: str) -> frozenset[str]:
    if not paths:
        return paths
    some, none = 0, 1
    given = b"\0".join(map(os.fsencode, paths))
    try:
        return frozenset(
            git_list(root.folder, "check-ignore", "-z", "--stdin", *options, accept=(some, none), given=given)
        )
    except GitRefused:  # as for a path inside a submodule: the listing finds out
        return frozenset()
