"""Which folders tools have made, among those of untracked files: a new project often has no ignore file yet."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from trivet.code.tree.ignore import folders_of, parent_of
from trivet.code.tree.names import MARKS, folder_reason


def made_by_tools(root: Path, untracked: Collection[str], only: Iterable[str]) -> dict[str, str]:
    """The folders of these paths that hold others' code or build output, by their names or by marks in them, and why.

    :param only: the paths that were asked for, if not all were: marks in the folders above them are not listed.
    """
    parents = {parent_of(path) for path in untracked}
    folders = {above for parent in parents for above in folders_of(f"{parent}x") if above}
    marks = _marks(untracked) | _marks_above(root, only)
    reasons = ((folder, _name_reason(folder) or marks.get(folder)) for folder in folders)
    return {folder: reason for folder, reason in reasons if reason is not None}


def outermost(made: Mapping[str, str]) -> dict[str, str]:
    return {folder: reason for folder, reason in made.items() if made.keys().isdisjoint(folders_of(folder))}


def _name_reason(folder: str) -> str | None:
    return folder_reason(folder[folder.rfind("/", 0, -1) + 1 : -1], ())


def _marks(paths: Iterable[str]) -> dict[str, str]:
    split = (path.rpartition("/") for path in paths)
    return {f"{above}/": MARKS[name] for above, _, name in split if above and name in MARKS}


def _marks_above(root: Path, only: Iterable[str]) -> dict[str, str]:
    above_asked = {above for path in only for above in folders_of(f"{path}/x") if above}
    return {above: MARKS[name] for above in above_asked for name in MARKS if (root / above / name).exists()}
