"""Finds the files of a worktree by one `git ls-files`, which compares them with the index as `git status` does."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from pathlib import Path

from trivet.code.tree.git import GitRefused, ask, ask_list, without_filters
from trivet.code.tree.ignore import LARGEST, OWN, folders_of
from trivet.code.tree.look import LINK, NESTED, Look, printable
from trivet.code.tree.made import made_by_tools, outermost
from trivet.code.tree.root import checked_digest
from trivet.contained_file import read_regular
from trivet.errors import InvalidInput

LIST = ("--literal-pathspecs", "ls-files", "-z", "-v", "-s", "-c", "-m", "-d", "-o", "--exclude-standard")
# The letters that `ls-files -v` writes before an entry. All others mean a tracked file of which git does not say
# whether it is unchanged: unmerged, or marked as assumed unchanged or outside of a sparse checkout.
UNCHANGED, UNTRACKED, CHANGED = "H", "?", ("C", "R")
LINK_MODE, SUBMODULE_MODE = "120000", "160000"
ATTRIBUTES = ".gitattributes"
# The attributes by which the bytes on disk are others than the blob's. Ends of lines are left aside: see `read_blob`.
CONVERTING = ("filter", "working-tree-encoding", "ident")
MODE = slice(2, 8)
BLOB_BEGINS = 9


def list_by_git(look: Look, folder: Path, only: Collection[str] = (), within: str = "") -> bool:
    """Shows every file to the look. Answers whether git names any.

    :param within: the path of this worktree from the root, where it is a submodule.
    """
    entries = ask_list(folder, *without_filters(folder), *LIST, "--", *_repositories(folder, only))
    tracked, doubtful, untracked = _sorted(entries)
    listed = (*tracked, *untracked)
    for above in _holders(folder, OWN, only, listed):
        look.own_ignores.add(within + above, folder / above / OWN)
    if any(_may_convert(folder / above / ATTRIBUTES) for above in _holders(folder, ATTRIBUTES, only, listed)):
        doubtful |= _converted(folder, tracked)
    for path, head in tracked.items():
        mode, whole = head[MODE], within + path
        if mode == SUBMODULE_MODE:
            _list_submodule(look, folder / path, f"{whole}/")
        elif path in doubtful:
            look.take(whole)
        elif mode == LINK_MODE:
            look.leave_out(whole, LINK)
        else:
            look.take_clean(whole, head[BLOB_BEGINS:-2])
    made = made_by_tools(folder, untracked, only)
    for path in untracked:
        if not made.keys().isdisjoint(folders_of(path)):
            continue
        if path.endswith("/"):
            look.leave_out(within + path, NESTED)
        else:
            look.take(within + path)
    for path, reason in outermost(made).items():
        look.leave_out(within + path, reason)
    return bool(entries)


def lists_below(folder: Path, prefix: str) -> bool:
    """Whether a listing has files below a folder of a worktree: not if git ignores it, or tools have made it."""
    ignored, not_ignored = 0, 1
    if ask(folder, "check-ignore", prefix, accept=(ignored, not_ignored)):
        return False
    tracked, _, untracked = _sorted(ask_list(folder, *without_filters(folder), *LIST, "--", prefix))
    made = made_by_tools(folder, untracked, [prefix.rstrip("/")])
    return bool(tracked) or any(made.keys().isdisjoint(folders_of(path)) for path in untracked)


def _sorted(entries: Iterable[str]) -> tuple[dict[str, str], set[str], list[str]]:
    """Tracked files, each with what git wrote before its path; those that must be read; and untracked ones."""
    tracked: dict[str, str] = {}
    doubtful: set[str] = set()
    untracked: list[str] = []
    for entry in entries:
        if entry[0] == UNTRACKED:
            untracked.append(entry[2:])
            continue
        head, _, path = entry.partition("\t")
        if entry[0] not in CHANGED:
            tracked[path] = head
        if entry[0] != UNCHANGED:
            doubtful.add(path)
    return tracked, doubtful, untracked


def _repositories(folder: Path, only: Collection[str]) -> list[str]:
    """The paths, but for one inside a submodule the submodule: git takes no path that leads into another repository."""
    return [_repository(folder, path) or path for path in only]


def _repository(folder: Path, path: str) -> str | None:
    outermost_first = reversed([above.rstrip("/") for above in folders_of(f"{path}/x") if above])
    return next((above for above in outermost_first if os.path.lexists(folder / above / ".git")), None)


def _holders(folder: Path, name: str, only: Collection[str], listed: Iterable[str]) -> list[str]:
    """The folders, of those that were listed or lie above the asked paths, that hold a file of this name."""
    above_asked = (above for path in only for above in folders_of(path))
    seen = (path.removesuffix(name) for path in listed if path.endswith(name))
    return [above for above in {"", *above_asked, *seen} if (folder / above / name).is_file()]


def _may_convert(attributes: Path) -> bool:
    try:
        text = read_regular(attributes, LARGEST)[0]
    except InvalidInput:
        return True
    return any(name.encode() in text for name in CONVERTING)


def _converted(folder: Path, tracked: Iterable[str]) -> set[str]:
    """Files that git changes as it checks them out, as by Git LFS: their bytes are not those of the blob."""
    given = b"\0".join(map(os.fsencode, tracked))
    answers = ask_list(folder, "check-attr", "-z", "--stdin", *CONVERTING, given=given)
    paths, values = answers[::3], answers[2::3]
    return {path for path, value in zip(paths, values, strict=True) if value not in ("unspecified", "unset")}


def _list_submodule(look: Look, folder: Path, path: str) -> None:
    if not os.path.lexists(folder / ".git"):
        look.leave_out(path, "a submodule that is not checked out")
        return
    try:
        checked_digest(folder)
        list_by_git(look, folder, within=path)
    except (GitRefused, InvalidInput) as error:
        look.leave_out(path, f"a submodule that git does not list ({printable(str(error))})")
