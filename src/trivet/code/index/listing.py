"""A listing of a tree of which a part was looked at again."""

from __future__ import annotations

from collections.abc import Collection

from trivet.code.tree import Listing
from trivet.code.types import Tree


def merged(before: Listing, part: Listing, only: Collection[str]) -> Listing:
    """The listing with what is now at the paths `only`, and below them, in the place of what was there before."""
    exact = frozenset(one.rstrip("/") for one in only)
    below = tuple(f"{one}/" for one in exact)

    def elsewhere(path: str) -> bool:
        return path not in exact and not path.startswith(below)

    files = [file for file in before.tree.files if elsewhere(file.path)]
    left_out = [one for one in before.tree.left_out if elsewhere(one.path.rstrip("/"))]
    tree = Tree(
        files=tuple(sorted([*files, *part.tree.files], key=lambda file: file.path)),
        left_out=(*left_out, *part.tree.left_out),
    )
    stats = {path: stat for path, stat in before.stats.items() if elsewhere(path)}
    return Listing(tree, {**stats, **part.stats})
