"""Finds the files of a folder without git: a walk that heeds `.gitignore` files and passes by what tools have made."""

from __future__ import annotations

import os
from collections.abc import Collection
from itertools import pairwise
from pathlib import Path

from trivet.code.tree.ignore import GITIGNORE, OWN, IgnoreFiles, folders_of
from trivet.code.tree.look import LINK, NESTED, Look
from trivet.code.tree.names import content_reason, folder_reason
from trivet.code.tree.root import Root


def list_by_walk(look: Look, folder: Path, only: Collection[str] = (), heed_gitignore: bool = True) -> bool:
    """Shows every file to the look. Answers whether there are some, and `.gitignore` files ignore them all."""
    walk = _Walk(look, folder, only, heed_gitignore)
    waiting = [""]
    while waiting:
        waiting.extend(reversed(walk.folders_in(waiting.pop())))
    return walk.ignored and not walk.seen


def enters(folder: Path, prefix: str) -> bool:
    """Whether a walk comes to a folder below, which has a slash at its end."""
    look = Look(Root(folder=folder, prefix="", identity="", git=False), {})
    walk = _Walk(look, folder, [prefix.rstrip("/")], heed_gitignore=True)
    above = [*reversed(list(folders_of(prefix))), prefix]
    return all(inner in walk.folders_in(here) for here, inner in pairwise(above)) and not walk.is_made(prefix)


class _Walk:
    def __init__(self, look: Look, folder: Path, only: Collection[str], heed_gitignore: bool) -> None:
        self._look = look
        self._folder = f"{folder}/"
        self._asked = frozenset(only)
        self._leads = {above.rstrip("/") for path in only for above in folders_of(f"{path}/x")}
        self._heed = heed_gitignore
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
        if OWN in names:
            self._look.own_ignores.add(here, Path(self._folder, here, OWN))

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
        return f"ignored by {OWN}" if self._look.own_ignores and self._look.own_ignores.ignores(path) else None


def _reason_within(names: Collection[str]) -> str | None:
    return NESTED if ".git" in names else content_reason(names)
