"""Which files a tree has now: its root, its files by the blob ids of their bytes, their bytes, and what changes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from trivet.code.tree.by_git import list_by_git
from trivet.code.tree.by_walk import list_by_walk
from trivet.code.tree.find import find_root
from trivet.code.tree.git import GitRefused
from trivet.code.tree.index_file import index_path
from trivet.code.tree.look import LARGEST_FILE, Listing, Look, Stat, blob_of, printable
from trivet.code.tree.root import Root
from trivet.code.tree.watcher import watch
from trivet.code.types import TreeFile
from trivet.contained_file import check_contained, read_regular
from trivet.errors import InvalidInput

__all__ = [
    "Listing",
    "Root",
    "Stat",
    "blob_of",
    "find_root",
    "index_path",
    "list_tree",
    "read_blob",
    "read_file",
    "watch",
]


SHA1_DIGITS = 40


def list_tree(root: Root, known: Mapping[str, Stat] | None = None, only: Collection[str] = ()) -> Listing:
    """Every file worth indexing, by the blob id of its present bytes, and what was left out.

    :param known: the stats of the last listing of this folder. Files that look the same are not read again.
    :param only: paths to look at, as `watch` gives them; a folder stands for all that is below it. Empty: the root.
    """
    only = () if "" in only else only
    look, refusal = Look(root, known or {}), root.refusal
    try:
        if root.git and (list_by_git(look, root.folder, only) or only):
            return look.listing()
    except GitRefused as error:  # since the root was found: the program is gone, or the repository broke
        refusal = str(error)
    look = _walked(root, known or {}, only)
    if refusal:
        look.leave_out(".git/", f"its files were found without git: {printable(refusal)}")
    return look.listing()


def _walked(root: Root, known: Mapping[str, Stat], only: Collection[str]) -> Look:
    """Without git. A folder that ignores all it has, as environments do, is searched nevertheless: it was asked for."""
    look = Look(root, known)
    if list_by_walk(look, root.folder, only) and not only:
        look = Look(root, known)
        list_by_walk(look, root.folder, heed_gitignore=False)
    return look


def read_file(root: Root, path: str) -> bytes:
    """The bytes of a file below the root; an error if it is a link, no regular file, outside, or too large."""
    try:
        check_contained(root.folder, path)
        return read_regular(root.folder / path, LARGEST_FILE)[0]
    except InvalidInput as error:
        raise InvalidInput(f"{printable(path)} cannot be shown: {error}.") from None


def read_blob(root: Root, file: TreeFile) -> bytes | None:
    """The bytes of a listed file, to keep under its blob id; None if it has changed since: then list its path again.

    Bytes that git would store with other ends of lines count as the same.
    """
    data = read_file(root, file.path)
    digest = "sha1" if len(file.blob) == SHA1_DIGITS else "sha256"
    same = file.blob in (blob_of(data, digest), blob_of(data.replace(b"\r\n", b"\n"), digest))
    return data if same else None
