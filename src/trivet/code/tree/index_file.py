"""Where the index of a root lies: in the user's cache folder, because it can be made again."""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

from trivet.code.tree.root import Root
from trivet.private_folder import private_folder
from trivet.settings import cache_folder

# Where the indexes lie instead, as for tests.
VARIABLE = "TRIVET_CODE_CACHE"
_DIGITS = 12
_LONGEST_NAME = 60
_NOT_PLAIN = re.compile(r"[^\w.-]")


def index_path(root: Root) -> Path:
    """One file for each repository; its folder is made. The name is for people, the digits tell apart."""
    digits = hashlib.sha256(os.fsencode(root.identity)).hexdigest()[:_DIGITS]
    return private_folder(_folder()) / f"{_name(root)}-{digits}.db"


def _folder() -> Path:
    named = os.environ.get(VARIABLE)
    return Path(named).expanduser() if named else cache_folder() / "code"


def _name(root: Root) -> str:
    """The same for all worktrees: the folder that git's common directory lies in, or the bare repository's own."""
    identity = Path(root.identity)
    folder = identity.parent if identity.name == ".git" else identity
    return _NOT_PLAIN.sub("_", folder.name)[:_LONGEST_NAME] or "root"
