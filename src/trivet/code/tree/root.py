"""What is indexed: a folder, and what its index is named by.

Where the index of a root lies: in the user's cache folder, because it can be made again.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path

import msgspec

from trivet.code.tree.git import GitRefused, ask
from trivet.common.files import private_folder
from trivet.errors import InvalidInput
from trivet.settings import cache_folder

_FATAL = 128  # git's status where it cannot answer, after those answers that it could give


class Root(msgspec.Struct, frozen=True, kw_only=True):
    """What is indexed. `folder` and `identity` are real paths, with no symbolic link in them.

    :param folder: the top level of the worktree that the asked folder lies in; without git, the asked folder.
    :param prefix: the asked folder's path below it, with a slash at its end; empty if it is the same.
    :param identity: names the index: git's common directory, which all worktrees share; without git, the folder.
    :param git: whether git can be asked which files there are.
    :param refusal: why not, where the folder is a worktree: there is no git program, or it does not want to.
    :param digest: what this repository's blob ids are made by: `sha1`, in a few repositories `sha256`.
    """

    folder: Path
    prefix: str
    identity: str
    git: bool
    refusal: str = ""
    digest: str = "sha1"


def no_worktree(folder: Path) -> str:
    return (
        f"{folder} is a git directory without files of its own. Give a worktree of it: `git worktree list` names those "
        "there are, and `git worktree add FOLDER BRANCH` makes one."
    )


def checked_digest(top: Path) -> str:
    """How git makes blob ids here. Git must mean the same top level: a configuration may name a folder elsewhere."""
    questions = ("--is-bare-repository", "--show-object-format", "--show-toplevel")
    answers = os.fsdecode(ask(top, "rev-parse", *questions, accept=(0, _FATAL))).split("\n", 2)
    bare, digest, named = (*answers, "", "")[:3]
    if bare == "true":
        raise InvalidInput(no_worktree(top))
    if not bare:
        ask(top, "rev-parse", "--git-dir")  # fails again, and says why in git's own words, as that it is another user's
    if os.path.realpath(named.removesuffix("\n")) != str(top):
        raise GitRefused(f"git does not take {top} for the top level of a worktree")
    return digest


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
