"""Finds the root for a folder, and lists its files: by one `git ls-files`, or by a walk."""

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
    """Return the worktree around a folder.

    A folder that the worktree leaves out is its own root: the caller asked for it.
    """
    requested = _readable_folder(folder)
    top = next(
        (above for above in (requested, *requested.parents) if os.path.lexists(above / ".git")),
        None,
    )
    if top != requested and all((requested / name).exists() for name in _OF_A_GIT_DIRECTORY):
        raise InvalidInput(no_worktree(requested))
    if top is None:
        return _plain(requested)
    prefix = "" if requested == top else f"{requested.relative_to(top).as_posix()}/"
    root = _of_worktree(top, prefix)
    covers = lists_below if root.git else is_entered
    return root if not prefix or covers(top, prefix) else _plain(requested)


def _readable_folder(folder: Path) -> Path:
    real = Path(os.path.realpath(folder))
    if not real.exists():
        raise InvalidInput(f"{folder} does not exist. Give the folder that holds the code.")
    if not real.is_dir():
        raise InvalidInput(f"{folder} is a file. Give the folder that contains it, {real.parent}.")
    try:
        with os.scandir(real):
            return real
    except OSError as error:
        raise InvalidInput(
            f"{folder} cannot be opened ({error.strerror}). Give a folder you may read."
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
    """Act as `git rev-parse --git-common-dir`, even if git is missing or refuses."""
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
    """Return the files worth indexing, and what was left out.

    Files that match the stats in `known` are not read again. `only` limits the listing to paths.
    """
    only = () if "" in only else only
    builder, refusal = ListingBuilder(root, known or {}), root.refusal
    try:
        if root.git and (list_by_git(builder, root.folder, only) or only):
            return builder.listing()
    except GitRefused as error:  # since find_root, git was removed or the repository broke
        refusal = str(error)
    builder = _walked(root, known or {}, only)
    if refusal:
        builder.leave_out(".git/", f"files were listed without git: {printable(refusal)}")
    return builder.listing()


def _walked(root: Root, known: Mapping[str, Stat], only: Collection[str]) -> ListingBuilder:
    """List without git; if `.gitignore` hides everything, as in environments, ignore it."""
    builder = ListingBuilder(root, known)
    if list_by_walk(builder, root.folder, only) and not only:
        builder = ListingBuilder(root, known)
        list_by_walk(builder, root.folder, respect_gitignore=False)
    return builder


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
# Letters that `ls-files -v` writes before an entry. All others mark a tracked file that git does
# not vouch for: unmerged, assumed unchanged, or outside a sparse checkout.
UNCHANGED, UNTRACKED, CHANGED = "H", "?", ("C", "R")
LINK_MODE, SUBMODULE_MODE = "120000", "160000"
ATTRIBUTES = ".gitattributes"
# Attributes that make bytes on disk differ from the blob. `read_blob` handles line endings.
CONVERTING = ("filter", "working-tree-encoding", "ident")
MODE = slice(2, 8)
BLOB_BEGINS = 9


def list_by_git(
    builder: ListingBuilder, folder: Path, only: Collection[str] = (), within: str = ""
) -> bool:
    """Add all files to the builder, and return whether git lists any.

    `within` is the path of a submodule from the root.
    """
    entries = git_list(folder, *without_filters(folder), *LIST, "--", *_repositories(folder, only))
    tracked, doubtful, untracked = _sorted(entries)
    listed = (*tracked, *untracked)
    for above in _holders(folder, TRIVET_IGNORE, only, listed):
        builder.own_ignores.add(within + above, folder / above / TRIVET_IGNORE)
    if any(
        _may_convert(folder / above / ATTRIBUTES)
        for above in _holders(folder, ATTRIBUTES, only, listed)
    ):
        doubtful |= _converted(folder, tracked)
    for path, head in tracked.items():
        mode, whole = head[MODE], within + path
        if mode == SUBMODULE_MODE:
            _list_submodule(builder, folder / path, f"{whole}/")
        elif path in doubtful:
            builder.take(whole)
        elif mode == LINK_MODE:
            builder.leave_out(whole, LINK)
        else:
            builder.take_clean(whole, head[BLOB_BEGINS:-2])
    made = tool_folders(folder, untracked, only)
    for path in untracked:
        if not made.keys().isdisjoint(folders_of(path)):
            continue
        if path.endswith("/"):
            builder.leave_out(within + path, NESTED)
        else:
            builder.take(within + path)
    for path, reason in outermost(made).items():
        builder.leave_out(within + path, reason)
    return bool(entries)


def lists_below(folder: Path, prefix: str) -> bool:
    """Return False for a folder that git ignores or tools made."""
    ignored, not_ignored = 0, 1
    if ask(folder, "check-ignore", prefix, accept=(ignored, not_ignored)):
        return False
    tracked, _, untracked = _sorted(git_list(folder, *without_filters(folder), *LIST, "--", prefix))
    made = tool_folders(folder, untracked, [prefix.rstrip("/")])
    return bool(tracked) or any(made.keys().isdisjoint(folders_of(path)) for path in untracked)


def _sorted(entries: Iterable[str]) -> tuple[dict[str, str], set[str], list[str]]:
    """Return tracked files with git's mode and blob, files to read, and untracked files."""
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
    """Replace paths in submodules by the submodule: git rejects such paths."""
    return [_repository(folder, path) or path for path in only]


def _repository(folder: Path, path: str) -> str | None:
    outermost_first = reversed([above.rstrip("/") for above in folders_of(f"{path}/x") if above])
    return next(
        (above for above in outermost_first if os.path.lexists(folder / above / ".git")), None
    )


def _holders(folder: Path, name: str, only: Collection[str], listed: Iterable[str]) -> list[str]:
    above_requested = (above for path in only for above in folders_of(path))
    seen = (path.removesuffix(name) for path in listed if path.endswith(name))
    return [above for above in {"", *above_requested, *seen} if (folder / above / name).is_file()]


def _may_convert(attributes: Path) -> bool:
    try:
        text = read_regular_file(attributes, MAX_IGNORE_BYTES)[0]
    except InvalidInput:
        return True
    return any(name.encode() in text for name in CONVERTING)


def _converted(folder: Path, tracked: Iterable[str]) -> set[str]:
    """Return files that git changes on checkout, as LFS does: their bytes are not the blob's."""
    given = b"\0".join(map(os.fsencode, tracked))
    answers = git_list(folder, "check-attr", "-z", "--stdin", *CONVERTING, given=given)
    paths, values = answers[::3], answers[2::3]
    return {
        path
        for path, value in zip(paths, values, strict=True)
        if value not in ("unspecified", "unset")
    }


def _list_submodule(builder: ListingBuilder, folder: Path, path: str) -> None:
    if not os.path.lexists(folder / ".git"):
        builder.leave_out(path, "a submodule that is not checked out")
        return
    try:
        checked_digest(folder)
        list_by_git(builder, folder, within=path)
    except (GitRefused, InvalidInput) as error:
        builder.leave_out(path, f"a submodule that git does not list ({printable(str(error))})")


def list_by_walk(
    builder: ListingBuilder,
    folder: Path,
    only: Collection[str] = (),
    respect_gitignore: bool = True,
) -> bool:
    """Add all files, and return whether there are some and `.gitignore` hides all."""
    walk = _Walk(builder, folder, only, respect_gitignore)
    waiting = [""]
    while waiting:
        waiting.extend(reversed(walk.folders_in(waiting.pop())))
    return walk.ignored and not walk.seen


def is_entered(folder: Path, prefix: str) -> bool:
    builder = ListingBuilder(Root(folder=folder, prefix="", identity="", git=False), {})
    walk = _Walk(builder, folder, [prefix.rstrip("/")], respect_gitignore=True)
    above = [*reversed(list(folders_of(prefix))), prefix]
    return all(
        inner in walk.folders_in(here) for here, inner in pairwise(above)
    ) and not walk.is_made(prefix)


class _Walk:
    def __init__(
        self, builder: ListingBuilder, folder: Path, only: Collection[str], respect_gitignore: bool
    ) -> None:
        self._builder = builder
        self._folder = f"{folder}/"
        self._requested = frozenset(only)
        self._leads = {above.rstrip("/") for path in only for above in folders_of(f"{path}/x")}
        self._respect_gitignore = respect_gitignore
        self._git_ignores = IgnoreFiles(builder.leave_out)
        self.ignored = self.seen = False

    def folders_in(self, here: str) -> list[str]:
        entries = self._entries(here)
        names = {entry.name for entry in entries}
        if here and (reason := _reason_within(names)):
            self._builder.leave_out(here, reason)
            return []
        self._read_ignores(here, names)
        inner = []
        for entry in entries:
            path = here + entry.name
            if not self._is_requested(path):
                continue
            if entry.is_dir(follow_symlinks=False):
                inner += self._entered(f"{path}/", entry.name, names)
            else:
                self._visit_entry(path, entry)
        return inner

    def is_made(self, here: str) -> bool:
        return _reason_within({entry.name for entry in self._entries(here)}) is not None

    def _entries(self, here: str) -> list[os.DirEntry[str]]:
        try:
            with os.scandir(self._folder + here) as entries:
                return sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            self._builder.leave_out(here, f"cannot be opened ({error.strerror})")
            return []

    def _read_ignores(self, here: str, names: Collection[str]) -> None:
        if GITIGNORE in names and self._respect_gitignore:
            self._git_ignores.add(here, Path(self._folder, here, GITIGNORE))
        if TRIVET_IGNORE in names:
            self._builder.own_ignores.add(here, Path(self._folder, here, TRIVET_IGNORE))

    def _is_requested(self, path: str) -> bool:
        if not self._requested or path in self._leads:
            return True
        return any(above.rstrip("/") in self._requested for above in folders_of(path))

    def _entered(self, path: str, name: str, siblings: Collection[str]) -> list[str]:
        reason = folder_reason(name, siblings) or self._ignore_reason(path)
        if reason is None:
            return [path]
        if name != ".git":
            self._builder.leave_out(path, reason)
        return []

    def _visit_entry(self, path: str, entry: os.DirEntry[str]) -> None:
        if entry.is_symlink():
            self._builder.leave_out(path, LINK)
        elif reason := self._ignore_reason(path):
            self._builder.leave_out(path, reason)
        else:
            self.seen = True
            self._builder.take(path)

    def _ignore_reason(self, path: str) -> str | None:
        if self._git_ignores and self._git_ignores.ignores(path):
            self.ignored = True
            return f"ignored by {GITIGNORE}"
        return (
            f"ignored by {TRIVET_IGNORE}"
            if self._builder.own_ignores and self._builder.own_ignores.ignores(path)
            else None
        )


def _reason_within(names: Collection[str]) -> str | None:
    return NESTED if ".git" in names else content_reason(names)
