"""The files of a source tree, their blob ids and bytes, and changes to them."""

from __future__ import annotations

from trivet.code.tree.list_files import find_root, list_tree
from trivet.code.tree.listing import Listing, Stat, blob_of, read_blob, read_file
from trivet.code.tree.repository import Root, index_path, watch

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
