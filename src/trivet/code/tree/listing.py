"""Builds the listing of a tree: files with blob ids, and why others are left out."""

from __future__ import annotations

import hashlib
import os
import stat
import time
from collections.abc import Mapping

import msgspec

from trivet.code.tree.exclusions import TRIVET_IGNORE, IgnoreFiles, file_reason
from trivet.code.tree.repository import Root
from trivet.code.types import LeftOut, Tree, TreeFile
from trivet.common.files import check_contained, read_regular_file
from trivet.errors import InvalidInput

MAX_FILE_BYTES = 1_000_000
# A file that changed this shortly before the scan may change again with the same time and size:
# FAT, the coarsest file-system clock in use, counts in steps of two seconds.
SAME_TICK_NS = 2_000_000_000
NEVER = -1
LINK = "a symbolic link, which is not followed"
NESTED = "a separate git repository. Give this folder to search it"
TOO_LARGE = f"too large: more than {MAX_FILE_BYTES:,} bytes"


class Stat(msgspec.Struct, frozen=True, gc=False):
    """A file when its blob id was computed; NEVER matches none."""

    size: int
    modified: int
    changed: int  # st_ctime, which programs cannot set, unlike `modified`
    inode: int
    blob: str


class Listing(msgspec.Struct, frozen=True):
    """A tree, and the stats to pass to its next listing."""

    tree: Tree
    stats: Mapping[str, Stat]


class ListingBuilder:
    """One scan; paths are from the root, with slashes."""

    def __init__(self, root: Root, known: Mapping[str, Stat]) -> None:
        self._folder = str(root.folder)
        self._root = root
        self._known = known
        self._began = time.time_ns()
        self._contained: set[str] = set()
        self._files: list[TreeFile] = []
        self._stats: dict[str, Stat] = {}
        self._left_out: list[LeftOut] = []
        self.own_ignores = IgnoreFiles(self.leave_out)

    def listing(self) -> Listing:
        self._files.sort(key=lambda file: file.path)
        return Listing(Tree(files=tuple(self._files), left_out=tuple(self._left_out)), self._stats)

    def leave_out(self, path: str, reason: str) -> None:
        self._left_out.append(LeftOut(printable(path), reason))

    def take_clean(self, path: str, blob: str) -> None:
        """Add a file that git reports as unchanged from this blob."""
        if not self._may_take(path):
            return
        known = self._known.get(path)
        if known is not None and known.blob == blob:
            self._take(path, known)
        elif (found := self._status(path)) is not None:
            self._take(path, self._stat(found, blob))

    def take(self, path: str) -> None:
        if not self._may_take(path) or (found := self._status(path)) is None:
            return
        known = self._known.get(path)
        if known is None or not _same(known, found):
            known = self._read(path)
        if known is not None:
            self._take(path, known)

    def _take(self, path: str, known: Stat) -> None:
        self._files.append(TreeFile(path, known.blob, known.size))
        self._stats[path] = known

    def _may_take(self, path: str) -> bool:
        reason = file_reason(path[path.rfind("/") + 1 :])
        if reason is None and not path.isascii() and not _is_utf8(path):
            reason = "its name is not UTF-8"
        if reason is None and self.own_ignores and self.own_ignores.ignores(path):
            reason = f"ignored by {TRIVET_IGNORE}"
        if reason is not None:
            self.leave_out(path, reason)
        return reason is None

    def _status(self, path: str) -> os.stat_result | None:
        try:
            found = os.lstat(f"{self._folder}/{path}")
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            self.leave_out(path, f"cannot be inspected ({error.strerror})")
            return None
        reason = _kind_reason(found)
        if reason is not None:
            self.leave_out(path, reason)
        return None if reason else found

    def _read(self, path: str) -> Stat | None:
        try:
            self._check_contained(path)
            data, found = read_regular_file(f"{self._folder}/{path}", MAX_FILE_BYTES)
        except InvalidInput as error:
            self.leave_out(path, str(error))
            return None
        return self._stat(found, blob_of(data, self._root.digest), len(data))

    def _check_contained(self, path: str) -> None:
        folder = path[: path.rfind("/") + 1]
        if folder not in self._contained:
            check_contained(self._root.folder, path)
            self._contained.add(folder)

    def _stat(self, found: os.stat_result, blob: str, size: int | None = None) -> Stat:
        latest = max(found.st_mtime_ns, found.st_ctime_ns)
        modified = found.st_mtime_ns if latest < self._began - SAME_TICK_NS else NEVER
        return Stat(
            found.st_size if size is None else size, modified, found.st_ctime_ns, found.st_ino, blob
        )


def blob_of(data: bytes, digest: str = "sha1") -> str:
    return hashlib.new(digest, b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def printable(path: str) -> str:
    """Replace bytes that are not UTF-8, to store and show the path."""
    return path if path.isascii() else os.fsencode(path).decode(errors="replace")


def _kind_reason(found: os.stat_result) -> str | None:
    if stat.S_ISLNK(found.st_mode):
        return LINK
    if not stat.S_ISREG(found.st_mode):
        return "not a regular file"
    return TOO_LARGE if found.st_size > MAX_FILE_BYTES else None


def _same(known: Stat, found: os.stat_result) -> bool:
    return (
        known.modified == found.st_mtime_ns
        and known.changed == found.st_ctime_ns
        and known.size == found.st_size
        and known.inode == found.st_ino
    )


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


SHA1_DIGITS = 40


def read_file(root: Root, path: str) -> bytes:
    """Return a file's bytes.

    Raises:
        InvalidInput: It is a link, not a regular file, outside the root, or too large.
    """
    try:
        check_contained(root.folder, path)
        return read_regular_file(root.folder / path, MAX_FILE_BYTES)[0]
    except InvalidInput as error:
        raise InvalidInput(f"Cannot read {printable(path)}: {error}.") from None


def read_blob(root: Root, file: TreeFile) -> bytes | None:
    """Return a listed file's bytes, or None if it must be listed again.

    Other line endings, as git may store them, are no change.
    """
    data = read_file(root, file.path)
    digest = "sha1" if len(file.blob) == SHA1_DIGITS else "sha256"
    same = file.blob in (blob_of(data, digest), blob_of(data.replace(b"\r\n", b"\n"), digest))
    return data if same else None
