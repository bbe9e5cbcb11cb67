"""Finds the root for a folder that somebody asks about.

Finds the files of a worktree by one `git ls-files`, which compares them with the index as `git status` does.

Finds the files of a folder without git: a walk that heeds `.gitignore` files and passes by what tools have made.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from itertools import pairwise
from pathlib import Path

from trivet.code.tree.exclusions import (
    GITIGNORE,
    MAX_IGNORE_BYTES,
    TRIVET_IGNORE,
    IgnoreFiles,
    content_reason,
    folder_reason,
    folders_of,
    outermost,
    tool_folders,
)
from trivet.code.tree.listing import LINK, NESTED, Listing, ListingBuilder, Stat, printable
from trivet.code.tree.repository import (
    GitRefused,
    Root,
    ask,
    checked_digest,
    git_list,
    no_worktree,
    without_filters,
)
from trivet.common.files import read_regular_file
from trivet.errors import InvalidInput

_OF_A_GIT_DIRECTORY = ("HEAD", "objects", "refs")
_LONGEST_GITFILE = 4096


def find_root(folder: Path) -> Root:
    """The worktree that a folder lies in. One that the worktree leaves out is a root of its own: it was asked for."""
    asked = _readable_folder(folder)
    top = next(
        (above for above in (asked, *asked.parents) if os.path.lexists(above / ".git")), None
    )
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
        raise InvalidInput(
            f"{folder} cannot be looked into ({error.strerror}). Give a folder you may read."
        ) from None


def _plain(folder: Path) -> Root:
    return Root(folder=folder, prefix="", identity=str(folder), git=False)


def _of_worktree(top: Path, prefix: str) -> Root:
    identity = _common_directory(top)
    try:
        return Root(
            folder=top, prefix=prefix, identity=identity, git=True, digest=checked_digest(top)
        )
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


def list_tree(
    root: Root, known: Mapping[str, Stat] | None = None, only: Collection[str] = ()
) -> Listing:
    """Every file worth indexing, by the blob id of its present bytes, and what was left out.

    :param known: the stats of the last listing of this folder. Files that look the same are not read again.
    :param only: paths to look at, as `watch` gives them; a folder stands for all that is below it. Empty: the root.
    """
    only = () if "" in only else only
    look, refusal = ListingBuilder(root, known or {}), root.refusal
    try:
        if root.git and (list_by_git(look, root.folder, only) or only):
            return look.listing()
    except (
        GitRefused
    ) as error:  # since the root was found: the program is gone, or the repository broke
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


LIST = (
    "--literal-pathspecs",
    "ls-files",
    "-z",
    "-v",
    "-s",
    "-c",
    "-m",
    "-d",
    "-o",
    "--exclude-standard",
)
# The letters that `ls-files -v` writes before an entry. All others mean a tracked file of which git does not say
# whether it is unchanged: unmerged, or marked as assumed unchanged or outside of a sparse checkout.
UNCHANGED, UNTRACKED, CHANGED = "H", "?", ("C", "R")
LINK_MODE, SUBMODULE_MODE = "120000", "160000"
ATTRIBUTES = ".gitattributes"
# The attributes by which the bytes on disk are others than the blob's. Ends of lines are left aside: see `read_blob`.
CONVERTING = ("filter", "working-tree-encoding", "ident")
MODE = slice(2, 8)
BLOB_BEGINS = 9


def list_by_git(
    look: ListingBuilder, folder: Path, only: Collection[str] = (), within: str = ""
) -> bool:
    """Shows every file to the look. Answers whether git names any.

    :param within: the path of this worktree from the root, where it is a submodule.
    """
    entries = git_list(folder, *without_filters(folder), *LIST, "--", *_repositories(folder, only))
    tracked, doubtful, untracked = _sorted(entries)
    listed = (*tracked, *untracked)
    for above in _holders(folder, TRIVET_IGNORE, only, listed):
        look.own_ignores.add(within + above, folder / above / TRIVET_IGNORE)
    if any(
        _may_convert(folder / above / ATTRIBUTES)
        for above in _holders(folder, ATTRIBUTES, only, listed)
    ):
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
    made = tool_folders(folder, untracked, only)
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
    tracked, _, untracked = _sorted(git_list(folder, *without_filters(folder), *LIST, "--", prefix))
    made = tool_folders(folder, untracked, [prefix.rstrip("/")])
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
    return next(
        (above for above in outermost_first if os.path.lexists(folder / above / ".git")), None
    )


def _holders(folder: Path, name: str, only: Collection[str], listed: Iterable[str]) -> list[str]:
    """The folders, of those that were listed or lie above the asked paths, that hold a file of this name."""
    above_asked = (above for path in only for above in folders_of(path))
    seen = (path.removesuffix(name) for path in listed if path.endswith(name))
    return [above for above in {"", *above_asked, *seen} if (folder / above / name).is_file()]


def _may_convert(attributes: Path) -> bool:
    try:
        text = read_regular_file(attributes, MAX_IGNORE_BYTES)[0]
    except InvalidInput:
        return True
    return any(name.encode() in text for name in CONVERTING)


def _converted(folder: Path, tracked: Iterable[str]) -> set[str]:
    """Files that git changes as it checks them out, as by Git LFS: their bytes are not those of the blob."""
    given = b"\0".join(map(os.fsencode, tracked))
    answers = git_list(folder, "check-attr", "-z", "--stdin", *CONVERTING, given=given)
    paths, values = answers[::3], answers[2::3]
    return {
        path
        for path, value in zip(paths, values, strict=True)
        if value not in ("unspecified", "unset")
    }


def _list_submodule(look: ListingBuilder, folder: Path, path: str) -> None:
    if not os.path.lexists(folder / ".git"):
        look.leave_out(path, "a submodule that is not checked out")
        return
    try:
        checked_digest(folder)
        list_by_git(look, folder, within=path)
    except (GitRefused, InvalidInput) as error:
        look.leave_out(path, f"a submodule that git does not list ({printable(str(error))})")


def list_by_walk(
    look: ListingBuilder, folder: Path, only: Collection[str] = (), respect_gitignore: bool = True
) -> bool:
    """Shows every file to the look. Answers whether there are some, and `.gitignore` files ignore them all."""
    walk = _Walk(look, folder, only, respect_gitignore)
    waiting = [""]
    while waiting:
        waiting.extend(reversed(walk.folders_in(waiting.pop())))
    return walk.ignored and not walk.seen


def is_entered(folder: Path, prefix: str) -> bool:
    """Whether a walk comes to a folder below, which has a slash at its end."""
    look = ListingBuilder(Root(folder=folder, prefix="", identity="", git=False), {})
    walk = _Walk(look, folder, [prefix.rstrip("/")], respect_gitignore=True)
    above = [*reversed(list(folders_of(prefix))), prefix]
    return all(
        inner in walk.folders_in(here) for here, inner in pairwise(above)
    ) and not walk.is_made(prefix)


class _Walk:
    def __init__(
        self, look: ListingBuilder, folder: Path, only: Collection[str], respect_gitignore: bool
    ) -> None:
        self._look = look
        self._folder = f"{folder}/"
        self._asked = frozenset(only)
        self._leads = {above.rstrip("/") for path in only for above in folders_of(f"{path}/x")}
        self._heed = respect_gitignore
        self._git_ignores = IgnoreFiles(look.leave_out)
        self.ignored = self.seen = False

    def folders_in(self, here: str) -> list[str]:
        """Takes the files of a folder and answers its folders."""
        entries = self._entries(here)
        names = {entry.name for entry in entries}
        if here and (reason := _reason_within(names)):
            self._look.leave_out(here, reason)
            return []
        self._read_ignores(here, names)
        inner = []
        for entry in entries:
            path = here + entry.name
            if not self._is_asked(path):
                continue
            if entry.is_dir(follow_symlinks=False):
                inner += self._entered(f"{path}/", entry.name, names)
            else:
                self._see(path, entry)
        return inner

    def is_made(self, here: str) -> bool:
        """Whether a tool has made a folder, by what is in it."""
        return _reason_within({entry.name for entry in self._entries(here)}) is not None

    def _entries(self, here: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self._folder + here) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self._look.leave_out(here, f"cannot be looked into ({error.strerror})")
            return []

    def _read_ignores(self, here: str, names: Collection[str]) -> None:
        if GITIGNORE in names and self._heed:
            self._git_ignores.add(here, Path(self._folder, here, GITIGNORE))
        if TRIVET_IGNORE in names:
            self._look.own_ignores.add(here, Path(self._folder, here, TRIVET_IGNORE))

    def _is_asked(self, path: str) -> bool:
        """Whether it is one of the paths that are looked for, lies below one, or leads to one."""
        if not self._asked or path in self._leads:
            return True
        return any(above.rstrip("/") in self._asked for above in folders_of(path))

    def _entered(self, path: str, name: str, beside: Collection[str]) -> list[str]:
        reason = folder_reason(name, beside) or self._ignore_reason(path)
        if reason is None:
            return [path]
        if name != ".git":
            self._look.leave_out(path, reason)
        return []

    def _see(self, path: str, entry: os.DirEntry[str]) -> None:
        if entry.is_symlink():
            self._look.leave_out(path, LINK)
        elif reason := self._ignore_reason(path):
            self._look.leave_out(path, reason)
        else:
            self.seen = True
            self._look.take(path)

    def _ignore_reason(self, path: str) -> str | None:
        if self._git_ignores and self._git_ignores.ignores(path):
            self.ignored = True
            return f"ignored by {GITIGNORE}"
        return (
            f"ignored by {TRIVET_IGNORE}"
            if self._look.own_ignores and self._look.own_ignores.ignores(path)
            else None
        )


def _reason_within(names: Collection[str]) -> str | None:
    return NESTED if ".git" in names else content_reason(names)
