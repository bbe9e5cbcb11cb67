"""Finds the root for a folder that somebody asks about."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

from trivet.code.tree.git import GitRefused
from trivet.code.tree.list_files import is_entered, list_by_git, list_by_walk, lists_below
from trivet.code.tree.listing import Listing, ListingBuilder, Stat, printable
from trivet.code.tree.root import Root, checked_digest, no_worktree
from trivet.errors import InvalidInput

_OF_A_GIT_DIRECTORY = ("HEAD", "objects", "refs")
_LONGEST_GITFILE = 4096


def find_root(folder: Path) -> Root:
    """The worktree that a folder lies in. One that the worktree leaves out is a root of its own: it was asked for."""
    asked = _readable_folder(folder)
    top = next((above for above in (asked, *asked.parents) if os.path.lexists(above / ".git")), None)
    if top != asked and all((asked / name).exists() for name in _OF_A_GIT_DIRECTORY):
        raise InvalidInput(no_worktree(asked))
    if top is None:
        return _plain(asked)
    prefix = "" if asked == top else f"{asked.relative_to(top).as_posix()}/"
    root = _of_worktree(top, prefix)
    covers = lists_below if root.git else is_entered
    return root if not prefix or covers(top, prefix) else _plain(asked)


def _readable_folder(folder: Path) -> Path:
    real = Path(os.path.realpath(folder))
    if not real.exists():
        raise InvalidInput(f"{folder} does not exist. Give the folder that holds the code.")
    if not real.is_dir():
        raise InvalidInput(f"{folder} is a file. Give the folder that it lies in, {real.parent}.")
    try:
        with os.scandir(real):
            return real
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be looked into ({error.strerror}). Give a folder you may read.") from None


def _plain(folder: Path) -> Root:
    return Root(folder=folder, prefix="", identity=str(folder), git=False)


def _of_worktree(top: Path, prefix: str) -> Root:
    identity = _common_directory(top)
    try:
        return Root(folder=top, prefix=prefix, identity=identity, git=True, digest=checked_digest(top))
    except GitRefused as error:
        return Root(folder=top, prefix=prefix, identity=identity, git=False, refusal=str(error))


def _common_directory(top: Path) -> str:
    """As `git rev-parse --git-common-dir`, also where git is not installed or refuses the repository."""
    git = top / ".git"
    if git.is_file():
        git = top / _line_of(git).removeprefix("gitdir:").strip()
    if (git / "commondir").is_file():
        git /= _line_of(git / "commondir")
    return os.path.realpath(git)


def _line_of(file: Path) -> str:
    with file.open("rb") as opened:
        return os.fsdecode(opened.read(_LONGEST_GITFILE)).strip()


def list_tree(root: Root, known: Mapping[str, Stat] | None = None, only: Collection[str] = ()) -> Listing:
    """Every file worth indexing, by the blob id of its present bytes, and what was left out.

    :param known: the stats of the last listing of this folder. Files that look the same are not read again.
    :param only: paths to look at, as `watch` gives them; a folder stands for all that is below it. Empty: the root.
    """
    only = () if "" in only else only
    look, refusal = ListingBuilder(root, known or {}), root.refusal
    try:
        if root.git and (list_by_git(look, root.folder, only) or only):
            return look.listing()
    except GitRefused as error:  # since the root was found: the program is gone, or the repository broke
        refusal = str(error)
    look = _walked(root, known or {}, only)
    if refusal:
        look.leave_out(".git/", f"its files were found without git: {printable(refusal)}")
    return look.listing()


def _walked(root: Root, known: Mapping[str, Stat], only: Collection[str]) -> ListingBuilder:
    """Without git. A folder that ignores all it has, as environments do, is searched nevertheless: it was asked for."""
    look = ListingBuilder(root, known)
    if list_by_walk(look, root.folder, only) and not only:
        look = ListingBuilder(root, known)
        list_by_walk(look, root.folder, respect_gitignore=False)
    return look
